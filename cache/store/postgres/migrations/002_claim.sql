-- Copyright 2026 The Pollard Authors
-- SPDX-License-Identifier: Apache-2.0
-- compatible: 1

-- All functions take their locks in this order, so that they never wait for each other:
-- epoch, hops, feeds by ID, hosts by name, pauses by scope. They read the clock behind the
-- locks, so that the time that they have waited counts.

-- incarnation names the server and its history: it changes when a standby is
-- promoted, and when the tables come from a dump.
create function pollard.incarnation() returns text language plpgsql as $$
begin
    return (select system_identifier from pg_control_system())
        || '/' || left(pg_walfile_name(pg_current_wal_lsn()), 8)
        || '/' || 'pollard.feeds'::regclass::oid;
end $$;

update pollard.epoch set incarnation = pollard.incarnation();

-- presume_lost notes that grants up to now may have been lost. Two seconds are added for
-- clocks that differ. The timeline grows with each promotion, so that no two servers give
-- the same tokens.
create function pollard.presume_lost() returns void language sql as $$
    update pollard.epoch set
        incarnation = pollard.incarnation(),
        since = clock_timestamp() + interval '2 seconds',
        era = greatest(era + 1, ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint)
$$;

-- durable has the transaction on disk before it is acknowledged, whatever the server's
-- default is.
create function pollard.durable() returns void language plpgsql as $$
begin
    if current_setting('synchronous_commit') = 'off' then
        perform set_config('synchronous_commit', 'on', true);
    end if;
end $$;

-- begin_grants returns the epoch, after a fail-over the new one.
create function pollard.begin_grants(out since timestamptz, out era bigint) language plpgsql as $$
declare
    here text := pollard.incarnation();
    there text;
begin
    perform pollard.durable();
    select e.since, e.era, e.incarnation into since, era, there from pollard.epoch e;
    if there <> here then
        select e.incarnation into there from pollard.epoch e for update;
        if there <> here then
            perform pollard.presume_lost();
        end if;
        select e.since, e.era into since, era from pollard.epoch e;
    end if;
end $$;

create function pollard.next_token(era bigint) returns bigint language sql as $$
    select era << 40 | nextval('pollard.tokens')
$$;

-- A lease: the answer to a claim, and the record.
create type pollard.lease as (
    n          bigint,      -- place among the claims
    denied     text,
    wait       interval,    -- null: for ever
    why        text,
    now        timestamptz, -- the moment of the answer
    id         uuid,
    url        text,
    token      bigint,
    next       timestamptz,
    hold       interval,
    polled     timestamptz,
    asked      timestamptz,
    version    bigint,
    state      text,
    facts      bytea,
    memo       bytea,
    host       text,
    domain     text,
    spacing    interval,
    configured boolean
);

-- leased puts a record into a lease.
create function pollard.leased(f pollard.feeds, now timestamptz, n bigint, denied text, wait interval, why text, bare boolean)
returns pollard.lease language plpgsql as $$
begin
    return (n, denied, wait, why, now, f.id, f.url, f.token, f.next, f.hold, f.polled, f.asked, f.version,
        f.state, f.facts, case when not bare then (select m.memo from pollard.memos m where m.id = f.id) end,
        f.host, f.domain, f.spacing, f.configured)::pollard.lease;
end $$;

-- hold_of is by how much claim_due moves the next poll of a feed. An imported one may lack it.
create function pollard.hold_of(f pollard.feeds) returns interval language sql immutable as $$
    select case when f.hold > '0' then f.hold else '1 hour' end
$$;

-- lock_hosts makes and locks the rows of hosts.
create function pollard.lock_hosts(names text[]) returns void language plpgsql as $$
declare
    locked int;
begin
    names := array(select distinct n from unnest(names) n where n <> '' order by n);
    loop
        insert into pollard.hosts (name)
            select n from unnest(names) n
            where not exists (select from pollard.hosts h where h.name = n)
            order by n on conflict do nothing;
        perform from pollard.hosts h where h.name = any(names) order by h.name for update;
        get diagnostics locked = row_count;
        exit when locked = cardinality(names); -- upkeep may have removed one in between
    end loop;
end $$;

-- host_free tells when a host may be asked, and why it is paused, if it is.
create function pollard.host_free(
    host text, domain text, spacing interval, since timestamptz, now timestamptz,
    out free timestamptz, out until timestamptz, out why text)
language plpgsql as $$
begin
    free := '-infinity';
    if host <> '' and spacing > '0' then
        select greatest(h.at, since) + spacing into free from pollard.hosts h where h.name = host;
    end if;
    select p.until, p.why into until, why from pollard.pauses p
        where p.scope in ('host ' || nullif(host, ''), 'domain ' || nullif(domain, '')) and p.until > now
        order by p.until desc limit 1;
end $$;

-- add_feed makes and locks a record. It is due at once, unless one that is lost may have
-- been polled.
create function pollard.add_feed(
    feed uuid, url text, hold interval, host text, domain text, spacing interval, configured boolean, since timestamptz)
returns void language plpgsql as $$
declare
    next timestamptz := greatest(clock_timestamp() - interval '1 microsecond', since + hold);
begin
    insert into pollard.feeds (id, url, next, turn, hold, host, domain, spacing, configured)
        values (feed, url, next, next, hold, host, domain, spacing, configured)
        on conflict do nothing;
    perform from pollard.feeds x where x.id = feed for update;
    if not found then
        raise serialization_failure using message = 'a feed was forgotten while it was claimed';
    end if;
end $$;

-- claim grants feeds that are named.
create function pollard.claim(
    ids uuid[], urls text[], holds interval[], floors interval[], configured boolean[],
    hosts text[], domains text[], spacings interval[], bare boolean)
returns setof pollard.lease language plpgsql as $$
declare
    e       record;
    now     timestamptz;
    c       record;
    f       pollard.feeds;
    h       record;
    due     timestamptz;
    locked  bigint;
    granted boolean := false;
begin
    e := pollard.begin_grants();

    if not exists (select from unnest(ids) i where not exists (select from pollard.feeds x where x.id = i)) then
        perform from pollard.feeds x where x.id = any(ids) order by x.id for update;
        get diagnostics locked = row_count;
        if locked < (select count(distinct i) from unnest(ids) i) then
            -- Some have been forgotten in this moment. The caller tries again.
            raise serialization_failure using message = 'feeds were forgotten while they were claimed';
        end if;
    else
        for c in
            select distinct on (x.id) * from unnest(ids, urls, holds, configured, hosts, domains, spacings)
                as x(id, url, hold, configured, host, domain, spacing) order by x.id
        loop
            perform from pollard.feeds x where x.id = c.id for update;
            if not found then
                perform pollard.add_feed(c.id, c.url, c.hold, c.host, c.domain, c.spacing, c.configured, e.since);
            end if;
        end loop;
    end if;
    perform pollard.lock_hosts(hosts);
    now := clock_timestamp();

    for c in
        select * from unnest(ids, holds, floors, configured, hosts, domains, spacings)
            with ordinality as x(id, hold, floor, configured, host, domain, spacing, n) order by n
    loop
        select * into f from pollard.feeds x where x.id = c.id;
        due := f.next;
        if due <= e.since then
            due := greatest(due, e.since + greatest(f.hold, c.hold));
        end if;
        f.next := due;
        if c.floor > '0' then
            due := least(due, c.floor + greatest(f.polled, e.since,
                (select o.at from pollard.hops o where o.id = c.id)));
        end if;
        h := pollard.host_free(c.host, c.domain, c.spacing, e.since, now);
        if due < now and h.free < now and h.until is null then
            update pollard.feeds x set
                token = pollard.next_token(e.era), polled = now,
                hold = c.hold, next = now + c.hold, turn = now + c.hold, waiting = false,
                host = c.host, domain = c.domain, spacing = c.spacing, configured = c.configured
                where x.id = c.id returning * into f;
            update pollard.hosts x set at = now where x.name = c.host;
            granted := true;
            return next pollard.leased(f, now, c.n, '', '0', '', bare);
            continue;
        end if;
        if (f.host, f.domain, f.spacing, f.configured) is distinct from (c.host, c.domain, c.spacing, c.configured) then
            update pollard.feeds x set
                host = c.host, domain = c.domain, spacing = c.spacing, configured = c.configured,
                turn = x.next, waiting = false
                where x.id = c.id;
            f.host := c.host; f.domain := c.domain; f.spacing := c.spacing; f.configured := c.configured;
        end if;
        return next pollard.leased(f, now, c.n,
            case when due >= now then 'not-due' when h.until is not null then 'paused' else 'busy' end,
            case when due < 'infinity' then greatest(due, h.until, h.free) - now end,
            case when due < now then coalesce(h.why, '') else '' end, bare);
    end loop;

    if not granted then -- a crash may undo the rest
        perform set_config('synchronous_commit', 'off', true);
    end if;
end $$;

-- set_aside takes feeds that nobody asks for out of the order of claim_due, until
-- somebody does, and takes back those that are not idle by this span.
create function pollard.set_aside(idle interval, now timestamptz) returns void language plpgsql as $$
declare
    page int := 1000; -- how many it looks at
begin
    if idle is null then
        update pollard.feeds x set turn = x.next where x.id = any(array(
            select y.id from pollard.feeds y
            where y.turn = 'infinity' and y.next < 'infinity' and (y.version <> 0 or y.configured)
            limit page for update skip locked));
        return;
    end if;
    update pollard.feeds x set turn = x.next where x.id = any(array(
        select y.id from pollard.feeds y
        where y.turn = 'infinity' and y.next < 'infinity' and (y.version <> 0 or y.configured) and y.asked > now - idle
        limit page for update skip locked));
    update pollard.feeds x set turn = 'infinity' where x.id = any(array(
        select y.id from pollard.feeds y where y.id = any(array(
            select z.id from (
                select w.id, w.asked from pollard.feeds w
                where w.turn < now and w.turn < 'infinity' and not w.waiting and (w.version <> 0 or w.configured)
                order by w.turn limit page) z
            where z.asked <= now - idle))
        for update skip locked));
end $$;

-- head returns the feed that waits for a host the longest, if any. On the way it sets
-- aside those that nobody asks for.
create function pollard.head(name text, idle interval, now timestamptz) returns pollard.feeds language plpgsql as $$
declare
    f pollard.feeds;
begin
    loop
        select * into f from pollard.feeds x
            where x.waiting and (x.version <> 0 or x.configured) and x.host = name
            order by x.next limit 1 for update skip locked;
        if f.id is null or (f.asked <= now - idle) is not true then
            return f;
        end if;
        update pollard.feeds x set turn = 'infinity', waiting = false where x.id = f.id;
    end loop;
end $$;

-- claim_due grants feeds that are due, leaves out those that nobody has asked for in
-- idle, and says when to ask again. It passes over feeds that another call has locked.
-- What it may not grant it moves out of the way, so that neither idle feeds nor those of
-- a large host that is busy are gone through again by each call.
create function pollard.claim_due(lim int, except_hosts text[], idle interval, bare boolean)
returns setof pollard.lease language plpgsql as $$
declare
    e        record;
    now      timestamptz;
    page     int := lim * 2 + 100;
    due      pollard.feeds[];
    f        pollard.feeds;
    h        record;
    empty    text[] := '{}';
    lapsed   uuid[]; -- presumably, by a server that is lost
    free     uuid[]; -- the longest overdue first, and one of a host
    unnamed  uuid[]; -- held, of hosts without a name
    blocked  uuid[]; -- held, of hosts with a name, those hosts, and until when
    hosts    text[];
    turns    timestamptz[];
    later    timestamptz;
    n        bigint := 0;
begin
    e := pollard.begin_grants();
    now := clock_timestamp();
    perform pollard.set_aside(idle, now);
    due := array(select x from pollard.feeds x
        where x.turn < now and x.turn < 'infinity' and not x.waiting and (x.version <> 0 or x.configured)
            and x.host <> all(except_hosts) and (idle is null or x.asked > now - idle)
        order by x.turn limit page for update skip locked);
    for h in
        select x.name from pollard.hosts x where x.turn < now and x.name <> all(except_hosts)
        order by x.turn limit page
    loop
        f := pollard.head(h.name, idle, now);
        if f.id is null then
            empty := empty || h.name;
        else
            due := due || f;
        end if;
    end loop;
    perform pollard.lock_hosts(empty || array(select x.host from unnest(due) x));
    now := clock_timestamp();
    update pollard.hosts x set turn = null where x.name = any(empty)
        and not exists (select from pollard.feeds y where y.waiting and (y.version <> 0 or y.configured) and y.host = x.name);

    with candidates as (
        select x.id, x.next, x.host, x.next <= e.since and e.since + pollard.hold_of(x) >= now as presumed,
            greatest(now, a.free, a.until) as at
        from unnest(due) x, pollard.host_free(x.host, x.domain, x.spacing, e.since, now) a
    ), ranked as (
        select *, at > now or host <> '' and row_number() over (partition by host, presumed order by next) > 1 as held
        from candidates
    )
    select array_agg(id) filter (where presumed),
        array_agg(id order by next) filter (where not presumed and not held),
        array_agg(id) filter (where not presumed and held and host = ''),
        array_agg(id) filter (where not presumed and held and host <> ''),
        array_agg(host) filter (where not presumed and held and host <> ''),
        array_agg(at) filter (where not presumed and held and host <> '')
        into lapsed, free, unnamed, blocked, hosts, turns from ranked;

    update pollard.feeds x set next = e.since + pollard.hold_of(x), turn = e.since + pollard.hold_of(x), waiting = false
        where x.id = any(lapsed);
    update pollard.feeds x set waiting = true where x.id = any(blocked) and not x.waiting;
    update pollard.hosts x set turn = t.at
        from (select u.name, max(u.at) as at from unnest(hosts, turns) u(name, at) group by u.name) t
        where x.name = t.name;
    -- A feed whose host has no name is held by a pause of the domain alone.
    update pollard.feeds x set turn = coalesce((select p.until from pollard.pauses p where p.scope = 'domain ' || x.domain), now)
        where x.id = any(unnamed);

    free := free[:lim];
    for f in
        with granted as (
            update pollard.feeds x set
                token = pollard.next_token(e.era), polled = now, hold = pollard.hold_of(x),
                next = now + pollard.hold_of(x), turn = now + pollard.hold_of(x), waiting = false
                where x.id = any(free) returning x.*)
        select * from granted g order by array_position(free, g.id)
    loop
        n := n + 1;
        update pollard.hosts x set at = now, turn = case when x.turn is not null then now + f.spacing end
            where x.name = f.host;
        return next pollard.leased(f, now, n, '', '0', '', bare);
    end loop;

    if n = 0 and lapsed is null then -- a crash may undo the rest
        perform set_config('synchronous_commit', 'off', true);
    end if;
    if n = lim then
        return;
    end if;
    -- The last row says when to ask again: at once if there is more, but not in a loop
    -- while another node is about to take it.
    select least(
        (select min(x.turn) from pollard.feeds x
            where x.turn < 'infinity' and not x.waiting and (x.version <> 0 or x.configured)
                and x.host <> all(except_hosts)),
        (select min(x.turn) from pollard.hosts x where x.turn is not null and x.name <> all(except_hosts)))
        into later;
    return next pollard.leased(null, now, 0, 'not-due',
        case when later is not null then greatest(later - now, interval '1 millisecond') end, '', true);
end $$;

-- hop grants the right to follow a redirect to a URL.
create function pollard.hop(
    url_id uuid, floor interval, yield boolean, host text, domain text, spacing interval,
    out denied text, out wait interval, out why text)
language plpgsql as $$
declare
    e    record;
    now  timestamptz;
    o    pollard.hops;
    f    pollard.feeds;
    h    record;
    due  timestamptz;
begin
    e := pollard.begin_grants();
    insert into pollard.hops (id, at, floor) values (url_id, '-infinity', '0') on conflict do nothing;
    select * into o from pollard.hops x where x.id = url_id for update;
    select * into f from pollard.feeds x where x.id = url_id for update;
    perform pollard.lock_hosts(array[host]);
    now := clock_timestamp();

    wait := '0';
    why := '';
    if yield and f.next < 'infinity' then
        denied := 'taken';
        return;
    end if;
    due := greatest(o.at, f.polled, e.since) + floor;
    h := pollard.host_free(host, domain, spacing, e.since, now);
    denied := case when due >= now then 'not-due' when h.until is not null then 'paused' when h.free >= now then 'busy' else '' end;
    if denied <> '' then
        wait := greatest(due, h.until, h.free) - now;
        why := case when denied = 'paused' then h.why else '' end;
        return;
    end if;
    insert into pollard.hops as x (id, at, floor) values (url_id, now, hop.floor)
        on conflict (id) do update set at = excluded.at, floor = excluded.floor;
    update pollard.feeds x set next = now + hop.floor, waiting = false,
        turn = greatest(x.turn, now + hop.floor)
        where x.id = url_id and x.next < now + hop.floor;
    if found then
        insert into pollard.changes (id) values (url_id);
    end if;
    update pollard.hosts x set at = now where x.name = host;
end $$;
