// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"strings"
)

// Version is the version of the tables. A database that has a later one is not opened, and one
// that has an earlier one is brought up when it is opened.
var Version = len(versions)

// written is the column that each claim and each commit writes, and each step renames. In a row it has the version from
// which on nothing in that row has another meaning.
var written = fmt.Sprint("tables_", Version)

// Steps returns the statements that bring tables of a version to the next one, by version: those
// of version 0 make the tables. Numbers and bytes are the database's types for a key that
// numbers rows and for bytes. README.md explains the tables for other programs that read them.
//
// A driver runs all that are missing in one transaction when it opens a database.
func Steps(numbers, bytes string) [][]string {
	steps := make([][]string, len(versions))
	types := strings.NewReplacer("{numbers}", numbers, "{bytes}", bytes)
	for i, statements := range versions {
		steps[i] = strings.Split(strings.TrimSpace(types.Replace(statements)), ";\n\n")
	}
	return steps
}

// versions are the statements of each step. One that has been released is not changed any more.
//
// But for the first, a step renames, adds columns that may be null, and replaces indexes. It
// writes no row and drops no table or column: with a million feeds it takes seconds, and needs
// no more space than its indexes. From version 4 on it begins with "alter table feed rename column
// tables_3 to tables_4": claims and commits of an earlier program fail then, and it takes the store as away.
var versions = []string{version1, version2, version3}

// Each claim and each commit writes a page of each index on next.
//
// All times are nanoseconds by the clock of the database: see [Time].
const version1 = `
create table host (                    -- without "not null", which has SQLite reject all rows if one is damaged
	name   text primary key,           -- as policy.Host.Name; 'feed <id>' for one feed that is not paced
	domain text default '',
	free   bigint default 0,           -- it must not be asked before
	ready  bigint,                     -- the first of its feeds may be polled then, or later; null: it has none
	calm   bigint,                     -- as ready, of established feeds alone
	turn   bigint default 0,           -- how many polls it has had
	served bigint default 0,           -- the owner of the established feed that was polled last
	other  bigint default 0,           -- and of the other one
	good   bigint                      -- it last answered well; null: never
);

create index host_ready on host (ready, calm) where ready is not null;

create table feed (
	n          {numbers},
	id         {bytes} not null unique,
	url        text,                        -- null: forgotten, or only a redirect led here
	host       text not null default '',
	domain     text not null default '',
	spacing    bigint not null default 0,
	class      bigint not null default 1,
	owner      bigint not null default 0,   -- the party that it counts for: store.Owner
	askers     {bytes},                     -- the last four, 8 bytes each, and the day in 2
	seen       bigint not null default 0,   -- the days on which it was read, as bits: bit 0 is the day of asked
	days       bigint not null default 0,   -- on how many of the last 30 it was read
	state      text not null default 'cold',
	configured bigint not null default 0,   -- 0 or 1
	token      bigint not null default 0,   -- of the last claim
	next       bigint,                      -- the next poll; null: none
	due        bigint,                      -- its place among the feeds of its host: next, long before if a reader
	                                        -- waits, and a day later if none has asked; null: it has none
	hold       bigint not null default 0,
	last       bigint,                      -- the last claim; null: never
	hopped     bigint,                      -- unused
	earliest   bigint,                      -- the origin asked not to be polled before; null: it did not
	until      bigint,                      -- a row without a URL is deleted then
	asked      bigint,                      -- a reader asked last; null: never
	version    bigint not null default 0,   -- 0: none
	size       bigint not null default 0,   -- of the body, in bytes
	coding     text not null default '',
	body       bigint not null default 0,   -- body.id; 0: none
	changed    bigint not null default 0,   -- the last commit, or another change that nodes must see
	news       bigint not null default 0,   -- 1: that brought the version
	outcome    bigint not null default 0,   -- the token of that commit; 0: it was no commit
	sum        bigint not null,
	facts      {bytes},
	memo       {bytes}
);

create index feed_due on feed (host, class, due, owner) where due is not null;

create index feed_use on feed (owner, class, size) where size > 0;

create index feed_until on feed (until) where url is null;

create table body (
	id   bigint not null,
	part bigint not null,   -- from 0
	sum  bigint not null,   -- CRC-32C of id, part, feed and data
	data {bytes} not null,
	primary key (id, part)
);

create table pending (
	body bigint primary key, -- parts are stored, and no feed names them: not yet, or not any more
	at   bigint not null     -- they are deleted then
);

create table pause (
	scope text primary key,  -- 'host <name>' or 'domain <name>'
	until bigint not null,
	why   text not null,
	step  bigint not null
);

create table counters (
	node text primary key,
	data {bytes} not null
);

create table meta (
	key   text primary key,
	value text not null
)`

const version2 = `
-- rows have no sum any more: 0
alter table feed rename column sum to unused;

-- what each poll changes
alter table feed rename column facts to poll_state;

-- what changes seldom
alter table feed rename column memo to feed_state;

-- 0: established
alter table feed rename column class to not_established;

-- the moment that it has reserved among the polls of its domain; null: none
alter table feed add column moment bigint;

-- unused, as the next
alter table feed add column followed bigint;

alter table feed add column waiting bigint;

-- the operator's configuration has the feed, as a node said last, until then; null: not known
alter table feed add column configured_until bigint;

-- what the row takes with its body, in bytes; null: not known
alter table feed add column taken bigint;

drop index feed_use;

create index feed_use on feed (owner, configured, not_established, taken, size);

create index feed_configured on feed (id, configured_until) where configured = 1;

-- by rank: see store.Rank
drop index feed_due;

create index feed_due on feed (host, (` + rankColumn + `), due, owner) where due is not null;

-- the owners whose feeds were polled last, by rank
alter table host rename column served to served_2;

alter table host rename column other to served_3;

alter table host add column served_4 bigint;

alter table host add column served_5 bigint;

-- of a domain, whose row is 'domain <name>': when there would be no other request to it; free is for feeds that
-- have a version, free_new for others, and free_public for those of public networks
alter table host add column free_new bigint;

alter table host add column free_public bigint;

-- the ranks whose last good answer said nothing of a rate limit, as bits
alter table host add column plain bigint;

-- the feed whose poll was refused; null: not known
alter table pause add column url text;

-- of the poll that was refused; null: not known
alter table pause add column token bigint`

const version3 = `
-- each claim and commit writes it, and each step renames it: statements of the version before fail then
alter table feed rename column unused to tables_3;

drop index feed_due;

drop index feed_use;

drop index feed_configured;

drop index host_ready;

-- the host that was polled is now the site: see feedurl.URL.Site
alter table feed rename column host to site;

-- a reader first asked for it at its own address; 0: none has; null: not known, so as asked
alter table feed add column first bigint;

-- the last refusal of a poll; null: none
alter table feed add column refused bigint;

-- the URL to which it redirects permanently; null: it does not
alter table feed add column points text;

-- it is polled then, whatever the decision is, as someone knows that it has changed; null if it is not poked
alter table feed add column wanted bigint;

-- the owners that asked in the last 30 days, 8 bytes each, and the day in 2; null: those of askers
alter table feed add column owners {bytes};

create index feed_next on feed (next, n) where url is not null and next is not null;

create index feed_wanted on feed (wanted) where wanted is not null;

create index feed_owner on feed (owner, taken, size)`

// rankColumn is an expression of version 2, which had ranks in place of owners that take turns.
const rankColumn = `case when configured = 1 or owner / 1152921504606846976 = 5 then 1
	when owner / 1152921504606846976 in (2, 3, 4) then case when not_established = 0 then 2 else 3 end
	when not_established = 0 then 4 else 5 end`
