-- Copyright 2026 The Pollard Authors
-- SPDX-License-Identifier: Apache-2.0
-- compatible: 1

-- hop grants the right to follow a redirect to a URL. The one before took no notice of
-- a feed that was made while it waited for the host: it came to that feed's row after
-- the host's, in the way of claims, and did not see when the feed had been polled.
create or replace function pollard.hop(
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
    if f.id is null and exists (select from pollard.feeds x where x.id = url_id) then
        -- It has been made since, and its row comes before that of the host. The caller
        -- tries again.
        raise serialization_failure using message = 'a feed was made while a redirect to it was followed';
    end if;
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
