// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/feedpollard/pollard/caddymodule/poller"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/status"
	"github.com/feedpollard/pollard/policy"
	"github.com/feedpollard/pollard/policy/document"
	"github.com/feedpollard/pollard/upstream"
)

func explainCommand() *cobra.Command {
	var o explainOptions
	cmd := &cobra.Command{
		Use:   "explain <file or URL>",
		Short: "Explains when a feed would be polled next, and why",
		Long: `Explains what a feed says about polling it, and when the next poll would be.

If the running instance knows the URL, it explains why the feed waits, and nothing is
polled. Otherwise the URL is polled once, and the explanation is what an instance
would decide after that response.

A file (or - for standard input) is the body of a response; flags describe the rest of
it. If the status is not 200, the file is the version that was stored before.

With --config, the running instance is not used. The rules are those of the Caddyfile
for the URL, or, for a file, for the URL that the feed gives as its own. Without
--config, the default rules apply.`,
		Example: `  pollard feeds explain https://example.com/feed.xml
  pollard feeds explain example.com/feed.xml --config /etc/pollard/Caddyfile
  pollard feeds explain feed.xml --header 'Cache-Control: max-age=7200'
  pollard feeds explain feed.xml --status 503 --header 'Retry-After: 3600' --json`,
		Args: exactArgs(1, "one file or URL"),
		RunE: run(func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), args[0], cmd.InOrStdin(), cmd.OutOrStdout())
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&o.now, "now", "", "the time of the response (RFC 3339); default: now")
	flags.IntVar(&o.status, "status", http.StatusOK, "the status of the response whose body is the file")
	flags.StringArrayVar(&o.headers, "header", nil, "a header field of that response, as 'Name: value'; repeatable")
	flags.StringVar(&o.config, "config", "", "a Caddyfile (or Caddy's JSON), for its rules")
	o.addFlags(cmd)
	return cmd
}

// explainOptions are the flags of `feeds explain`, as given.
type explainOptions struct {
	now     string
	status  int
	headers []string
	config  string
	asking
}

// explanation is the JSON form of what the command prints.
type explanation struct {
	Format   string          `json:"format,omitempty"`
	Version  string          `json:"version,omitempty"`
	Entries  *int            `json:"entries,omitempty"`
	Newest   time.Time       `json:"newest,omitzero"`
	Hints    policy.Hints    `json:"hints"`
	Decision decisionSummary `json:"decision"`
	Moves    []policy.Move   `json:"redirects,omitempty"`
	Problem  string          `json:"problem,omitempty"`
	Push     *status.Push    `json:"push,omitempty"`  // of a feed that an instance knows
	Pause    *status.Pause   `json:"pause,omitempty"` // likewise

	sentence string // why the next poll is when it is
}

// decisionSummary is a decision in whole seconds. After a 410 there is neither an
// interval nor a next poll.
type decisionSummary struct {
	IntervalSeconds *int64        `json:"interval_seconds,omitempty"`
	NextPoll        time.Time     `json:"next_poll,omitzero"`
	Winner          string        `json:"winner"`
	Considered      []policy.Term `json:"considered"`
}

func (o *explainOptions) run(ctx context.Context, what string, stdin io.Reader, out io.Writer) error {
	now := time.Now()
	if o.now != "" {
		var err error
		if now, err = time.Parse(time.RFC3339, o.now); err != nil {
			return wrongUsage("--now %q: expected a time such as 2026-11-21T08:00:00Z", o.now)
		}
	}
	header, err := parseHeader(o.headers)
	if err != nil {
		return err
	}
	if o.status < 100 || o.status > 599 {
		return wrongUsage("--status %d: expected one from 100 to 599", o.status)
	}
	remote := isRemote(what)
	if remote {
		if o.status != http.StatusOK || len(header) > 0 {
			return wrongUsage("--status and --header describe the answer that a file is the body of; %s answers for itself", what)
		}
		if o.config == "" && o.now == "" {
			if known, err := o.explainKnown(ctx, what, out); known || err != nil {
				return err
			}
		}
	}
	app, err := appOrDefault(o.config)
	if err != nil {
		return err
	}
	var x subject
	if remote {
		x, err = askOrigin(ctx, app, what)
		if o.now != "" {
			x.answer.At = now
		}
	} else {
		x, err = readAnswer(ctx, app, what, stdin, o.status, header, now)
	}
	if err != nil {
		return err
	}
	e, d := x.explain()
	err = printAs(out, o.json, "explanation", e, func(out io.Writer) error { return e.writeText(out, d) })
	return cmp.Or(err, problem(e.Problem))
}

// askTimeout is how long an instance has to say what it knows, before the origin is
// asked in its place.
const askTimeout = 10 * time.Second

// explainKnown explains a feed of the running instance, without a poll. It reports false
// if no instance runs or it does not know the feed. With --address, it is an error if none
// runs.
func (o *explainOptions) explainKnown(ctx context.Context, argument string, out io.Writer) (known bool, err error) {
	i, err := o.instance()
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	resp, err := i.do(ctx, "/pollard/feeds", argument)
	unsure := isRefused(err, http.StatusInternalServerError) // it may know the feed, but cannot read its store
	if _, wrong := errors.AsType[*usage](err); wrong || unsure || o.address != "" && err != nil && !isRefused(err, http.StatusNotFound) {
		return false, err
	}
	if err != nil {
		return false, nil
	}
	var f status.Feed
	if err := decodeJSON(resp, &f); err != nil {
		return false, err
	}
	e := explanationOf(f)
	err = printAs(out, o.json, "explanation", e, func(out io.Writer) error { return writeFeed(out, f, time.Now()) })
	return true, cmp.Or(err, problem(e.Problem))
}

// explanationOf returns the JSON form for a feed of an instance. The format comes from
// the content type.
func explanationOf(f status.Feed) explanation {
	e := explanation{Hints: f.Hints, Decision: summarize(f.Decision()), Push: f.Push, Pause: f.Pause}
	if f.Version == 0 {
		e.Problem = f.LastError
		return e
	}
	e.Entries = &f.Entries
	for _, format := range []string{"rss", "atom", "json"} {
		if strings.Contains(f.ContentType, format) {
			e.Format = format
		}
	}
	return e
}

type subject struct {
	rules    policy.Rules
	history  policy.History // before the answer
	answer   policy.Answer
	document *policy.Document // of the answer, or of the version before it
	problem  string
}

// explain decides as the gateway would, without jitter.
func (x subject) explain() (explanation, policy.Decision) {
	learned := x.document
	if x.answer.Status != http.StatusOK {
		learned = nil
	}
	history := x.history.Update(x.answer, learned, false)
	d := policy.Decide(x.rules, history, x.answer, 0)
	e := explanation{Problem: x.problem, Decision: summarize(d), Moves: x.answer.Moves, sentence: x.sentence(d, history)}
	if doc := x.document; doc != nil {
		e.Format, e.Version, e.Hints = doc.Format, doc.Version, doc.Hints
		e.Entries, e.Newest = &doc.Rhythm.Entries, doc.Rhythm.Changed
		if !e.Newest.IsZero() {
			e.Newest = e.Newest.UTC()
		}
	}
	return e, d
}

// sentence says why the next poll would be when it is.
func (x subject) sentence(d policy.Decision, history policy.History) string {
	f := status.Decided(d)
	f.URL, f.LastStatus, f.LastFailure, f.Failures = feedurl.Redacted(x.answer.URL), x.answer.Status, x.answer.Failure, history.Failures
	if x.answer.Err != nil {
		f.LastError = x.answer.Err.Error()
	}
	return plain(f.Explain(x.answer.At, nil).String())
}

func summarize(d policy.Decision) decisionSummary {
	s := decisionSummary{Winner: d.Winner, Considered: d.Considered}
	if s.Considered == nil {
		s.Considered = []policy.Term{}
	}
	if d.Next.Before(policy.Never) {
		seconds := int64((d.Interval + time.Second - 1) / time.Second)
		s.IntervalSeconds = &seconds
		s.NextPoll = d.Next.UTC().Add(time.Second - 1).Truncate(time.Second)
	}
	return s
}

func askOrigin(ctx context.Context, app *poller.App, argument string) (subject, error) {
	feed, err := feedArgument(argument)
	if err != nil {
		return subject{}, err
	}
	client := newClient(app)
	defer client.Close()
	x := subject{rules: app.RulesFor(feed)}
	x.answer = client.Poll(ctx, policy.Ask{URL: feed, Timeout: x.rules.Timeout, MaxBody: x.rules.MaxBody})
	x.decide(x.answer.Body)
	return x, nil
}

// readAnswer makes the answer that a file and flags describe. The real client
// classifies it, with the file in the place of the network.
func readAnswer(ctx context.Context, app *poller.App, path string, stdin io.Reader, status int, header http.Header, now time.Time) (subject, error) {
	body, err := readFileOr(path, stdin)
	if err != nil {
		return subject{}, err
	}
	const nowhere, prefix = "http://file.invalid/", "file.invalid: "
	ask := policy.Ask{URL: feedurl.MustParse(nowhere)}
	x := subject{rules: app.Rules()}
	if before, err := document.Read(body, header.Get("Content-Type"), now); err == nil {
		if self, err := feedurl.Parse(before.Hints.Self); err == nil {
			x.rules = app.RulesFor(self)
		}
		if status != http.StatusOK {
			x.document = before
			x.history = x.history.Update(policy.Answer{At: now, Status: http.StatusOK, Header: http.Header{}}, before, false)
		}
	}
	if status == http.StatusNotModified {
		ask.Validators = policy.Validators{URL: nowhere, ETag: `"of the version before"`}
	}
	ask.Timeout, ask.MaxBody = x.rules.Timeout, x.rules.MaxBody
	client := upstream.New(upstream.WithTransport(described(status, header, body)))
	defer client.Close()
	x.answer = client.Poll(ctx, ask)
	x.answer.Asked, x.answer.At = now, now
	x.answer.NotBefore, x.answer.Holder = time.Time{}, "" // of a host that does not exist
	if status == http.StatusOK || x.document == nil && len(body) > 0 {
		x.decide(body)
		x.problem = strings.TrimPrefix(x.problem, prefix)
	}
	return x, nil
}

// decide reads the document, and makes a failure of what is none.
func (x *subject) decide(body []byte) {
	if x.answer.Failure != policy.FailureNone && (x.answer.Status == http.StatusOK || len(body) == 0) {
		x.answer.Failure, x.answer.Err = document.Refused(x.answer)
		x.problem = string(x.answer.Failure)
		if x.answer.Err != nil {
			x.problem = x.answer.Err.Error()
		}
		return
	}
	if x.answer.Status == http.StatusOK {
		body = x.answer.Body // decoded
	}
	d, err := document.Read(body, x.answer.Header.Get("Content-Type"), x.answer.At)
	if err == nil {
		x.document = d
		return
	}
	failure, err := document.Failure(err, x.answer, body)
	if x.problem = err.Error(); x.answer.Failure == policy.FailureNone || failure == policy.FailureChallenge {
		x.answer.Failure, x.answer.Err = failure, err
	}
}

// described returns a transport with one answer, which was described in advance.
func described(status int, header http.Header, body []byte) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		return &http.Response{
			Status:     fmt.Sprintf("%d %s", status, http.StatusText(status)),
			StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: header.Clone(), Request: r,
			Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
		}, nil
	})
}

// parseHeader reads fields given as "Name: value". A value may hold commas, and a
// field may occur twice.
func parseHeader(fields []string) (http.Header, error) {
	h := make(http.Header)
	for _, field := range fields {
		name, value, ok := strings.Cut(field, ":")
		if name = strings.TrimSpace(name); !ok || name == "" || strings.ContainsAny(field, "\r\n") {
			return nil, wrongUsage("--header %q: expected 'Name: value'", field)
		}
		h.Add(name, strings.TrimSpace(value))
	}
	return h, nil
}

// isRemote reports whether an argument names a feed on the web and not a file: a URL,
// or host.name/path if there is neither such a file nor such a folder.
func isRemote(argument string) bool {
	scheme, _, found := strings.Cut(argument, "://")
	if found {
		return slices.Contains([]string{"http", "https", "feed"}, strings.ToLower(scheme))
	}
	if argument == "-" || strings.HasPrefix(argument, ".") {
		return false
	}
	host, _, found := strings.Cut(argument, "/")
	if !found || !strings.Contains(host, ".") {
		return false
	}
	_, err := os.Stat(host)
	return errors.Is(err, fs.ErrNotExist)
}
