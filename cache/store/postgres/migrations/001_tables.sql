-- Copyright 2026 The Pollard Authors
-- SPDX-License-Identifier: Apache-2.0
-- compatible: 1

-- One row for each migration that has been applied.
create table pollard.migrations (
    version        int primary key,
    min_compatible int not null, -- the oldest version whose programs can use this one
    applied        timestamptz not null default now()
);

-- One row: which database this is, and since when its records can be trusted.
create table pollard.epoch (
    one         boolean primary key default true check (one),
    store       uuid not null default gen_random_uuid(), -- of these tables
    incarnation text not null default '',  -- of the server that last granted a claim
    era         bigint not null default 1, -- the upper half of its tokens
    -- Grants from before may have been lost with another server: a record that was
    -- due at this moment may have been polled already.
    since       timestamptz not null default '-infinity',
    pruned      xid8 not null default '0'  -- changes up to this transaction are gone
);
insert into pollard.epoch default values;

create sequence pollard.tokens;

create table pollard.feeds (
    id         uuid primary key,
    url        text not null,
    token      bigint not null default 0, -- of the last grant
    next       timestamptz not null,      -- the next poll; infinity: none
    -- When claim_due considers the feed: next at first; infinity while nobody asks for it.
    turn       timestamptz not null,
    -- The feed is due, and its host has to be left alone: it is considered with the host.
    waiting    boolean not null default false,
    hold       interval not null default '0',
    polled     timestamptz not null default '-infinity', -- the last grant
    asked      timestamptz not null default '-infinity', -- by a reader
    -- When somebody last had to do with the feed.
    wanted     timestamptz not null generated always as (case when asked = '-infinity' then polled else asked end) stored,
    version    bigint not null default 0,
    size       bigint not null default 0, -- of the body, in bytes
    state      text not null default 'cold',
    facts      bytea,
    host       text not null default '',
    domain     text not null default '',
    spacing    interval not null default '0',
    configured boolean not null default false
) with (autovacuum_vacuum_scale_factor = 0.05); -- as each poll writes a row twice

create index feeds_next on pollard.feeds (next);
create index feeds_turn on pollard.feeds (turn)
    where turn < 'infinity' and not waiting and (version <> 0 or configured);
create index feeds_waiting on pollard.feeds (host, next)
    where waiting and (version <> 0 or configured);
create index feeds_idle on pollard.feeds (asked)
    where turn = 'infinity' and next < 'infinity' and (version <> 0 or configured);
create index feeds_stored on pollard.feeds (wanted, id) where version <> 0;
create index feeds_unread on pollard.feeds (wanted, id) where version = 0;

-- Apart from feeds, so that a poll that finds nothing new does not write them again.
create table pollard.memos (
    id   uuid primary key,
    memo bytea not null
);

create table pollard.bodies (
    id      uuid primary key,
    version bigint not null,
    coding  text not null,
    sum     bigint not null, -- CRC-32C of data
    data    bytea not null
);
alter table pollard.bodies alter column data set storage external; -- it is compressed already

create table pollard.hosts (
    name text primary key,
    at   timestamptz not null default '-infinity', -- the last poll started
    turn timestamptz -- when claim_due considers the feeds that wait for it; null: there are none
) with (fillfactor = 70);
create index hosts_turn on pollard.hosts (turn) where turn is not null;

create table pollard.pauses (
    scope text primary key,
    until timestamptz not null,
    why   text not null,
    step  int not null
);

-- URLs that were asked because of a redirect.
create table pollard.hops (
    id    uuid primary key,
    at    timestamptz not null,
    floor interval not null
);
create index hops_at on pollard.hops (at);

-- The log of changes. Numbers of a sequence do not become visible in their order;
-- the transaction tells what a reader has seen.
create table pollard.changes (
    seq       bigint generated always as identity primary key,
    xid       xid8 not null default pg_current_xact_id(),
    made      timestamptz not null default clock_timestamp(),
    id        uuid not null,
    version   bigint not null default 0,
    forgotten boolean not null default false
);
create index changes_xid on pollard.changes (xid);

-- Names the log. Unlogged tables are empty after a crash, when numbers of
-- transactions that readers of the log have seen may be given once more.
create unlogged table pollard.log (
    one boolean primary key default true check (one),
    id  uuid not null default gen_random_uuid()
);

-- What has been added to and taken from the totals. Appending rows needs no lock
-- that all transactions would queue for; upkeep sums them up.
create table pollard.totals (
    state  text not null,
    feeds  bigint not null,
    unread bigint not null,
    bytes  bigint not null
);

create function pollard.count() returns trigger language plpgsql as $$
begin
    if tg_op <> 'INSERT' then
        insert into pollard.totals values
            (old.state, -1, -(old.version = 0 and not old.configured)::int, -old.size);
    end if;
    if tg_op <> 'DELETE' then
        insert into pollard.totals values
            (new.state, 1, (new.version = 0 and not new.configured)::int, new.size);
    end if;
    return null;
end $$;

create trigger count_changed after update on pollard.feeds for each row
    when (old.state <> new.state or old.size <> new.size
        or (old.version = 0 and not old.configured) <> (new.version = 0 and not new.configured))
    execute function pollard.count();
create trigger count_added after insert or delete on pollard.feeds
    for each row execute function pollard.count();
