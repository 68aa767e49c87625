// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package store

import "strings"

// SchemaVersion is the version of [Schema]. A database that has a later one is not opened.
const SchemaVersion = 1

// Schema returns the statements that make the tables. Numbers and bytes are the
// database's types for a key that numbers rows and for bytes. docs/store.md explains the
// tables for other programs that read them.
//
// All times are nanoseconds by the clock of the database: see [Time].
func Schema(numbers, bytes string) []string {
	tables := strings.NewReplacer("{numbers}", numbers, "{bytes}", bytes).Replace(schema)
	return strings.Split(strings.TrimSpace(tables), ";\n\n")
}

// Claims find feeds through their hosts, so one paused host with thousands of feeds that
// are due costs a claim nothing. Therefore no index is on feed.next.
//
// Each claim and each commit writes a page of each index on ready and due. So there is one on each.
const schema = `
create table host (                    -- without "not null", which has SQLite reject all rows if one is damaged
	name   text primary key,           -- as policy.Host.Name; 'feed <id>' for one feed that is not paced
	domain text default '',
	free   bigint default 0,           -- it must not be asked before
	ready  bigint,                     -- the first of its feeds may be polled then, or later; null: it has none
	calm   bigint,                     -- as ready, of established feeds alone
	turn   bigint default 0,           -- the class of feeds that is polled next, if one is due
	served bigint default 0,           -- the owner of the established feed that was polled last
	other  bigint default 0,           -- and of the other one
	good   bigint                      -- it last answered well; null: never, or it has answered 429 since
);

create index host_ready on host (ready, calm) where ready is not null;

create table feed (
	n          {numbers},
	id         {bytes} not null unique,
	url        text,                        -- null: forgotten, or only a redirect led here
	host       text not null default '',
	domain     text not null default '',
	spacing    bigint not null default 0,
	class      bigint not null default 1,   -- 0: established
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
	hopped     bigint,                      -- a redirect to the URL was followed last; null: never
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
	sum        bigint not null,             -- XXH64 of all columns but n and due: a row with another one is damaged
	facts      {bytes},
	memo       {bytes}
);

create index feed_due on feed (host, class, due, owner) where due is not null;

create index feed_use on feed (owner, class, size) where size > 0;

create index feed_until on feed (until) where url is null;

create table body (
	id   bigint not null,
	part bigint not null,   -- from 0
	sum  bigint not null,   -- CRC-32C of id, part and data
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
