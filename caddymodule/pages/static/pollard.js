// Pages work without this script. It adds local times, buttons that copy an address, and dropping
// of a subscription list.
"use strict";

const today = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const recent = new Intl.DateTimeFormat(undefined, { weekday: "short", hour: "2-digit", minute: "2-digit" });
const dated = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit" });
for (const time of document.querySelectorAll("time[datetime]")) {
	const at = new Date(time.dateTime);
	if (Number.isNaN(at.getTime())) continue;
	time.title = time.textContent;
	const format = at.toDateString() === new Date().toDateString() ? today : Math.abs(at - Date.now()) < 6 * 864e5 ? recent : dated;
	time.textContent = format.format(at);
}

const spoken = document.createElement("p");
spoken.className = "vh";
spoken.setAttribute("role", "status");
document.body.append(spoken);

async function copy(node) {
	if (navigator.clipboard) return navigator.clipboard.writeText(node.textContent);
	// Without TLS there is no clipboard but the old one.
	const range = document.createRange();
	range.selectNodeContents(node);
	const selection = getSelection();
	selection.removeAllRanges();
	selection.addRange(range);
	if (!document.execCommand("copy")) throw new Error("copying is not allowed");
	selection.removeAllRanges();
}

for (const node of document.querySelectorAll("[data-copy]")) {
	const button = document.createElement("button");
	button.type = "button";
	button.className = "copy";
	button.textContent = "Copy";
	button.addEventListener("click", () => copy(node).then(
		() => { button.textContent = "Copied"; spoken.textContent = "The address is copied."; },
		() => { getSelection().selectAllChildren(node); button.textContent = "Press Ctrl+C"; },
	));
	node.after(" ", button);
}

for (const form of document.querySelectorAll("form.drop")) {
	const field = form.querySelector("input[type=file]");
	const over = (yes) => (event) => {
		event.preventDefault();
		form.classList.toggle("over", yes);
	};
	form.addEventListener("dragenter", over(true));
	form.addEventListener("dragover", over(true));
	form.addEventListener("dragleave", over(false));
	form.addEventListener("drop", (event) => {
		over(false)(event);
		if (!event.dataTransfer.files.length) return;
		field.files = event.dataTransfer.files;
		form.requestSubmit();
	});
}
