-- The whole schema in one migration: a later index or column would have to be built over every row that is there, and
-- would move the speed that was measured. Syntax of PostgreSQL 15 to 18; nothing here is changed after it was released,
-- a later migration alters it, and none is ever undone by this program.

-- +goose Up
CREATE SCHEMA IF NOT EXISTS events;

-- One row an event. Seven columns are written, three have defaults, the others are generated from raw, so that what is
-- searched can never differ from what was stored.
--
-- occurred_at is written and not generated: a cast of text to timestamptz is not immutable (42P17), and the time was
-- already reduced to microseconds where it was decoded, before any key or partition derived from it.
--
-- The four required attributes are NOT NULL beside their CHECKs: a CHECK passes on NULL.
CREATE TABLE events.cloud_event (
    occurred_at        timestamptz NOT NULL,
    raw                jsonb       NOT NULL,
    payload_sha256     bytea       NOT NULL,
    origin_topic_id    uuid,
    origin_partition   int,
    origin_offset      bigint,
    traceparent        text,
    ingest_xid         xid8        NOT NULL DEFAULT pg_current_xact_id(),
    event_uid          bigint      GENERATED ALWAYS AS IDENTITY,
    ingested_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    ce_source          text        NOT NULL GENERATED ALWAYS AS (raw ->> 'source') STORED,
    ce_id              text        NOT NULL GENERATED ALWAYS AS (raw ->> 'id') STORED,
    ce_type            text        NOT NULL GENERATED ALWAYS AS (raw ->> 'type') STORED,
    ce_specversion     text        NOT NULL GENERATED ALWAYS AS (raw ->> 'specversion') STORED,
    ce_subject         text        GENERATED ALWAYS AS (raw ->> 'subject') STORED,
    ce_datacontenttype text        GENERATED ALWAYS AS (raw ->> 'datacontenttype') STORED,
    CONSTRAINT cloud_event_specversion_ck CHECK (ce_specversion = '1.0'),
    CONSTRAINT cloud_event_required_ck CHECK (ce_source <> '' AND ce_id <> '' AND ce_type <> '')
) PARTITION BY RANGE (occurred_at);

-- What makes delivery at least once look like exactly once: an event is stored once for each (source, id) and time.
CREATE UNIQUE INDEX cloud_event_identity_uk ON events.cloud_event (occurred_at, ce_source, ce_id);
-- Pages by the time of the event.
CREATE INDEX cloud_event_occurred_ix ON events.cloud_event (occurred_at, event_uid);
-- One type over time.
CREATE INDEX cloud_event_type_ix ON events.cloud_event (ce_type, occurred_at);
-- "What came in between": rows lie in the order of their arrival, so a few blocks' summaries are enough.
CREATE INDEX cloud_event_ingested_ix ON events.cloud_event USING brin (ingested_at);
-- What is new since a snapshot, in the only order that is safe while writers commit out of order.
CREATE INDEX cloud_event_tail_ix ON events.cloud_event (ingest_xid, event_uid);

-- Makes the partitions of the months in [first, until), those that are missing; returns how many it made.
-- There is no default partition: a row that belongs nowhere is an answer (23514), not a table to clean up later.
-- Bounds are instants of UTC, whatever the session's time zone. A month is built beside the parent and then attached:
-- CREATE … PARTITION OF would lock out every writer, ATTACH lets them write on. Two callers wait for one another.
-- +goose StatementBegin
CREATE FUNCTION events.ensure_months(first timestamptz, until timestamptz) RETURNS int
    LANGUAGE plpgsql
    SET timezone = 'UTC'
AS $$
DECLARE
    month timestamptz := date_trunc('month', first);
    name  text;
    made  int := 0;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('events.ensure_months', 0));
    WHILE month < until LOOP
        name := 'cloud_event_' || to_char(month, 'YYYY_MM');
        IF NOT EXISTS (SELECT FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
                       WHERE i.inhparent = 'events.cloud_event'::regclass AND c.relname = name) THEN
            EXECUTE format('CREATE TABLE events.%I (LIKE events.cloud_event INCLUDING DEFAULTS INCLUDING CONSTRAINTS'
                || ' INCLUDING GENERATED INCLUDING STORAGE INCLUDING COMPRESSION)', name);
            EXECUTE format('ALTER TABLE events.cloud_event ATTACH PARTITION events.%I FOR VALUES FROM (%L) TO (%L)',
                name, month, month + interval '1 month');
            made := made + 1;
        END IF;
        month := month + interval '1 month';
    END LOOP;
    RETURN made;
END
$$;
-- +goose StatementEnd

-- How far a group has come in a partition, written in the transaction of the rows that account for it.
--
-- The topic's id is part of the key and not its name: a topic that was deleted and made again starts anew. epoch counts
-- the claims; only a writer that knows the current one may move next_offset. next_offset is NULL from the first claim to
-- the first batch. The fill factor leaves room to update a row in place, which happens with every batch.
CREATE TABLE events.consumer_checkpoint (
    group_id    text        NOT NULL,
    topic_id    uuid        NOT NULL,
    partition   int         NOT NULL,
    topic       text        NOT NULL,
    next_offset bigint,
    owner       text        NOT NULL,
    epoch       bigint      NOT NULL,
    updated_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (group_id, topic_id, partition)
) WITH (fillfactor = 50);

-- Moves the checkpoints of one batch forward, one position an array element, each partition at most once and in the order
-- in which every writer takes them, or two writers could wait for one another. Raises AP001 (a state of our own) when a
-- partition is claimed under another epoch: then nothing of the transaction may stand. A stored offset never goes back.
-- +goose StatementBegin
CREATE FUNCTION events.advance_checkpoint(grp text, topic_ids uuid[], partitions int[], epochs bigint[], nexts bigint[])
    RETURNS void
    LANGUAGE plpgsql
AS $$
BEGIN
    FOR i IN 1 .. coalesce(array_length(partitions, 1), 0) LOOP
        UPDATE events.consumer_checkpoint c
           SET next_offset = greatest(coalesce(c.next_offset, 0), nexts[i]), updated_at = clock_timestamp()
         WHERE c.group_id = grp AND c.topic_id = topic_ids[i] AND c.partition = partitions[i] AND c.epoch = epochs[i];
        IF NOT FOUND THEN
            RAISE EXCEPTION USING ERRCODE = 'AP001',
                MESSAGE = format('partition %s of topic %s is not claimed by group %s under epoch %s',
                                 partitions[i], topic_ids[i], grp, epochs[i]);
        END IF;
    END LOOP;
END
$$;
-- +goose StatementEnd

-- Who may do what must happen once. A holder's every step checks that the epoch is still its own.
CREATE TABLE events.lease (
    name   text        PRIMARY KEY,
    holder text        NOT NULL,
    epoch  bigint      NOT NULL,
    until  timestamptz NOT NULL
);

-- What an operator wants of a pipeline, obeyed by every replica that reads it; it survives a restart.
CREATE TABLE events.pipeline_state (
    pipeline   text        PRIMARY KEY,
    desired    text        NOT NULL CHECK (desired IN ('running', 'paused', 'stopped')),
    generation bigint      NOT NULL DEFAULT 1,
    seek       jsonb,
    by         text        NOT NULL,
    at         timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- A replica's word that it has obeyed a generation; a seek waits for those of all live replicas.
CREATE TABLE events.pipeline_ack (
    pipeline   text        NOT NULL,
    replica    text        NOT NULL,
    generation bigint      NOT NULL,
    state      text        NOT NULL,
    seen       timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (pipeline, replica)
);

-- The index of the dead-letter topic. The letters themselves stay in Kafka; losing this table costs a view and no event.
-- ref is the origin's topic/partition/offset, dlq_* where the newest copy of the letter lies, and copies counts those.
CREATE TABLE events.dead_letter (
    ref              text        PRIMARY KEY,
    dlq_topic_id     uuid        NOT NULL,
    dlq_partition    int         NOT NULL,
    dlq_offset       bigint      NOT NULL,
    origin_topic     text        NOT NULL DEFAULT '',
    origin_topic_id  uuid,
    origin_partition int,
    origin_offset    bigint,
    pipeline         text        NOT NULL DEFAULT '',
    reason           text        NOT NULL DEFAULT '',
    detail           text        NOT NULL DEFAULT '',
    fingerprint      text        NOT NULL DEFAULT '',
    event_id         text,
    event_type       text,
    event_source     text,
    attempt          int         NOT NULL DEFAULT 0,
    replay_of        text,
    readable         boolean     NOT NULL,
    problem          text        NOT NULL DEFAULT '',
    parts            int         NOT NULL DEFAULT 1,
    parts_have       int[]       NOT NULL DEFAULT '{}',
    copies           int         NOT NULL DEFAULT 1,
    first_seen       timestamptz NOT NULL,
    last_seen        timestamptz NOT NULL,
    state            text        NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'replayed', 'discarded', 'fixed')),
    actor            text
);
CREATE INDEX dead_letter_seen_ix ON events.dead_letter (last_seen DESC, ref);
CREATE INDEX dead_letter_reason_ix ON events.dead_letter (reason, last_seen DESC, ref);
CREATE INDEX dead_letter_fingerprint_ix ON events.dead_letter (fingerprint, last_seen DESC);

-- The dimensions of a search page: which types and sources exist at all, and since when. Filled by the rollup.
CREATE TABLE events.event_type (
    ce_type    text        PRIMARY KEY,
    first_seen timestamptz NOT NULL,
    last_seen  timestamptz NOT NULL
);
CREATE TABLE events.event_source (
    ce_source  text        PRIMARY KEY,
    first_seen timestamptz NOT NULL,
    last_seen  timestamptz NOT NULL
);

-- Events an hour and type, by the time of the event. A run counts an hour's rows again as a whole and replaces them, so
-- running it twice changes nothing.
CREATE TABLE events.event_rollup_hourly (
    hour        timestamptz NOT NULL,
    ce_type     text        NOT NULL,
    events      bigint      NOT NULL,
    sources     bigint      NOT NULL,
    computed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (hour, ce_type)
);
CREATE INDEX event_rollup_hourly_type_ix ON events.event_rollup_hourly (ce_type, hour);

-- Up to where a rollup has read the table: the pair that is safe while writers commit out of order.
CREATE TABLE events.rollup_watermark (
    name       text        PRIMARY KEY,
    ingest_xid xid8        NOT NULL,
    event_uid  bigint      NOT NULL,
    at         timestamptz NOT NULL DEFAULT clock_timestamp()
);
