-- Copyright 2026 The Pollard Authors
-- SPDX-License-Identifier: Apache-2.0
-- compatible: 1

-- What nodes have counted: package figures gives the meaning. A node that does not know
-- these tables counts in its memory, and leaves them alone.
create table pollard.figures (
    kind  smallint not null,
    key   bytea not null,
    value bytea not null,
    primary key (kind, key)
);
