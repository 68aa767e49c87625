-- Copyright 2026 The Pollard Authors
-- SPDX-License-Identifier: Apache-2.0
-- compatible: 1

-- The statistics of each node, which only Pollard can read.
create table pollard.counters (
    node text primary key,
    data bytea not null
);
drop table pollard.figures;
