-- Copyright 2026 The Pollard Authors
-- SPDX-License-Identifier: Apache-2.0
-- compatible: 1

-- touch notes when feeds were asked for. Those that were set aside as idle get a turn.
create function pollard.touch(ids uuid[], ago interval[]) returns void language plpgsql as $$
declare
    now    timestamptz;
    -- An update would wait for others, in any order, if it met feeds that have been added since.
    locked uuid[];
begin
    perform set_config('synchronous_commit', 'off', true);
    locked := array(select x.id from pollard.feeds x where x.id = any(ids) order by x.id for update);
    now := clock_timestamp();
    update pollard.feeds x set
        asked = now - t.ago, turn = case when x.turn = 'infinity' then x.next else x.turn end
        from unnest(ids, touch.ago) as t(id, ago)
        where x.id = t.id and x.id = any(locked) and x.asked < now - t.ago;
end $$;

-- remove deletes feeds whose rows the caller has locked.
create function pollard.remove(ids uuid[]) returns void language plpgsql as $$
begin
    delete from pollard.bodies x where x.id = any(ids);
    delete from pollard.memos x where x.id = any(ids);
    delete from pollard.feeds x where x.id = any(ids);
    perform pollard.announce(i, 0, true) from unnest(ids) i;
end $$;

create function pollard.forget(feed uuid) returns boolean language plpgsql as $$
begin
    perform pollard.durable();
    perform from pollard.feeds x where x.id = feed for update;
    if not found then
        return false;
    end if;
    perform pollard.remove(array[feed]);
    return true;
end $$;

-- sweep removes feeds that nobody has wanted since they were found unwanted.
create function pollard.sweep(ids uuid[], wanted timestamptz[]) returns setof uuid language plpgsql as $$
declare
    swept uuid[];
begin
    swept := array(select x.id from pollard.feeds x
        join unnest(sweep.ids, sweep.wanted) as c(id, wanted) on c.id = x.id
        where x.wanted <= c.wanted
        order by x.id for update of x);
    perform pollard.remove(swept);
    return query select unnest(swept);
end $$;

-- trim drops up to lim bodies, until the others take at most budget bytes. Two nodes that
-- did so at the same time would drop twice as much.
create function pollard.trim(budget bigint, lim int) returns setof uuid language plpgsql as $$
declare
    excess  bigint;
    f       record;
    dropped uuid[] := '{}';
begin
    perform pg_advisory_xact_lock(hashtext('pollard.trim'));
    select sum(t.bytes) - budget into excess from pollard.totals t;
    for f in
        select x.id, x.size from pollard.feeds x
        where x.version <> 0 order by x.wanted, x.id limit lim for update skip locked
    loop
        exit when excess is null or excess <= 0;
        dropped := dropped || f.id;
        excess := excess - f.size;
    end loop;
    delete from pollard.bodies x where x.id = any(dropped);
    update pollard.feeds x set version = 0, size = 0 where x.id = any(dropped);
    perform pollard.announce(i, 0, false) from unnest(dropped) i;
    return query select unnest(dropped);
end $$;

-- log_name names the log of changes.
create function pollard.log_name() returns text language plpgsql as $$
declare
    name uuid;
begin
    select l.id into name from pollard.log l;
    if name is null then
        insert into pollard.log default values on conflict do nothing;
        select l.id into name from pollard.log l;
    end if;
    return pollard.incarnation() || '/' || name;
end $$;

-- upkeep prunes what is not needed any more, up to lim rows of each table, and sums up the
-- totals. It returns whether there may be more to prune.
create function pollard.upkeep(keep_changes interval, lim int) returns boolean language plpgsql as $$
declare
    now    timestamptz := clock_timestamp();
    last   xid8;
    pruned int;
    more   boolean;
begin
    if not pg_try_advisory_xact_lock(hashtext('pollard.upkeep')) then
        return false; -- another node is at it
    end if;
    perform set_config('synchronous_commit', 'off', true);
    perform from pollard.epoch for update;

    -- Readers of the log have seen all transactions before the oldest one that is still under way.
    with gone as (
        delete from pollard.changes c where c.seq = any(array(
            select d.seq from pollard.changes d
            where d.made < now - keep_changes and d.xid < pg_snapshot_xmin(pg_current_snapshot())
            order by d.seq limit lim))
        returning c.xid)
    select count(*) over (), g.xid into pruned, last from gone g order by g.xid desc limit 1;
    if last is not null then
        update pollard.epoch e set pruned = greatest(e.pruned, last);
    end if;
    more := pruned = lim;

    delete from pollard.hops o where o.id = any(array(
        select p.id from pollard.hops p where p.at < now - interval '1 day' limit lim for update skip locked));
    get diagnostics pruned = row_count;
    more := more or pruned = lim;
    delete from pollard.hosts h where h.name = any(array(
        select i.name from pollard.hosts i where i.at < now - interval '1 day' and i.turn is null
        limit lim for update skip locked));
    get diagnostics pruned = row_count;
    more := more or pruned = lim;
    delete from pollard.pauses p where p.scope = any(array(
        select q.scope from pollard.pauses q where q.until < now - interval '1 day'
        limit lim for update skip locked));

    with gone as (
        delete from pollard.totals t where t.ctid = any(array(select u.ctid from pollard.totals u limit lim)) returning *)
    insert into pollard.totals
        select g.state, sum(g.feeds), sum(g.unread), sum(g.bytes) from gone g group by g.state;
    return coalesce(more, false) or (select count(*) >= lim from pollard.totals);
end $$;
