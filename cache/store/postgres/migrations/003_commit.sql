-- Copyright 2026 The Pollard Authors
-- SPDX-License-Identifier: Apache-2.0
-- compatible: 1

-- announce writes to the log of changes and wakes those who wait for a new version.
-- Notifications of all transactions queue for one lock, so other changes wait until
-- the log is read next.
create function pollard.announce(feed uuid, version bigint, forgotten boolean) returns void language plpgsql as $$
begin
    insert into pollard.changes (id, version, forgotten) values (feed, announce.version, announce.forgotten);
    if version <> 0 or forgotten then
        notify pollard;
    end if;
end $$;

-- put_memo and put_body store what a feed has besides its row. Both expect it to be locked.
create function pollard.put_memo(feed uuid, memo bytea) returns void language sql as $$
    insert into pollard.memos (id, memo) values (feed, memo)
        on conflict (id) do update set memo = excluded.memo
$$;

create function pollard.put_body(feed uuid, version bigint, coding text, sum bigint, data bytea) returns void language sql as $$
    insert into pollard.bodies (id, version, coding, sum, data) values (feed, version, coding, sum, data)
        on conflict (id) do update
        set version = excluded.version, coding = excluded.coding, sum = excluded.sum, data = excluded.data
$$;

-- commit stores the outcome of a poll. It returns false where the token is not valid.
create function pollard.commit(
    feed uuid, lease bigint, wait interval, hold interval, state text, facts bytea, memo bytea,
    withdraw boolean, version bigint, coding text, sum bigint, data bytea,
    host text, domain text, spacing interval,
    scopes text[], lengths interval[], whys text[], steps int[])
returns boolean language plpgsql as $$
declare
    now timestamptz;
    at  timestamptz;
begin
    if data is null and not withdraw and cardinality(scopes) = 0 then
        -- The claim, which is durable, keeps the feed until its hold has passed.
        perform set_config('synchronous_commit', 'off', true);
    else
        perform pollard.durable();
    end if;

    perform from pollard.feeds x where x.id = feed and x.token = lease and lease <> 0 for update;
    if not found then
        return false;
    end if;
    now := clock_timestamp();
    at := coalesce(now + wait, 'infinity');
    update pollard.feeds x set
        next = at, turn = at, waiting = false, hold = case when commit.hold > '0' then commit.hold else x.hold end,
        state = coalesce(nullif(commit.state, ''), x.state),
        facts = coalesce(commit.facts, x.facts),
        version = case when data is not null then commit.version when withdraw then 0 else x.version end,
        size = case when data is not null then length(data) when withdraw then 0 else x.size end,
        host = commit.host, domain = commit.domain, spacing = commit.spacing
        where x.id = feed;
    if memo is not null then
        perform pollard.put_memo(feed, memo);
    end if;
    if data is not null then
        perform pollard.put_body(feed, version, coding, sum, data);
    elsif withdraw then
        delete from pollard.bodies x where x.id = feed;
    end if;
    insert into pollard.pauses (scope, until, why, step)
        select distinct on (p.scope) p.scope, now + p.length, p.why, p.step
        from unnest(scopes, lengths, whys, steps) with ordinality as p(scope, length, why, step, n)
        where p.length > '0'
        order by p.scope, p.length desc, p.n desc
        on conflict (scope) do update set until = excluded.until, why = excluded.why, step = excluded.step
            where pauses.until < excluded.until;
    perform pollard.announce(feed, case when data is null then 0 else version end, false);
    return true;
end $$;

-- restore writes a record of an import. No lease from before fits its token.
create function pollard.restore(
    feed uuid, url text, wait interval, hold interval, polled interval, asked interval,
    state text, facts bytea, memo bytea, version bigint, coding text, sum bigint, data bytea,
    host text, domain text, spacing interval, configured boolean, fresh boolean)
returns void language plpgsql as $$
declare
    e     record;
    now   timestamptz;
    at    timestamptz;
    token bigint := 0;
begin
    e := pollard.begin_grants();
    perform from pollard.feeds x where x.id = feed for update;
    if found and fresh then
        return;
    end if;
    now := clock_timestamp();
    at := coalesce(now + wait, 'infinity');
    if polled is not null then
        token := pollard.next_token(e.era);
    end if;
    insert into pollard.feeds as x (id, url, token, next, turn, hold, polled, asked, version, size, state, facts,
            host, domain, spacing, configured)
        values (feed, restore.url, token, at, at, restore.hold,
            coalesce(now - restore.polled, '-infinity'), coalesce(now - restore.asked, '-infinity'),
            case when data is null then 0 else restore.version end, coalesce(length(data), 0),
            restore.state, restore.facts, restore.host, restore.domain, restore.spacing, restore.configured)
        on conflict (id) do update set
            url = excluded.url, token = excluded.token, next = greatest(x.next, excluded.next), turn = greatest(x.next, excluded.next),
            waiting = false,
            hold = excluded.hold, polled = excluded.polled, asked = excluded.asked,
            version = excluded.version, size = excluded.size, state = excluded.state, facts = excluded.facts,
            host = excluded.host, domain = excluded.domain, spacing = excluded.spacing,
            configured = excluded.configured
        where not fresh;
    if not found then
        return; -- it has come in this moment
    end if;
    if memo is null then
        delete from pollard.memos x where x.id = feed;
    else
        perform pollard.put_memo(feed, memo);
    end if;
    if data is null then
        delete from pollard.bodies x where x.id = feed;
    else
        perform pollard.put_body(feed, version, coding, sum, data);
    end if;
    perform pollard.announce(feed, case when data is null then 0 else version end, false);
end $$;
