-- The team store. {member}, {guest} and {maintainer} are this database's group roles, {path} the search path of every function.
--
-- Who sees a row is one column, audience: 'public', 'team', or '@' and the login role that wrote it. Row-level security compares it with
-- session_user, so that neither the client nor SET ROLE decides. Nobody but the functions below writes: members hold no INSERT,
-- UPDATE or DELETE on any table, and each function writes a row of audit.

CREATE TABLE counter (id integer PRIMARY KEY CHECK (id = 1), generation bigint NOT NULL);
INSERT INTO counter (id, generation) VALUES (1, 0);
CREATE TABLE state (key text PRIMARY KEY, value text NOT NULL);
-- Caches name the store they copy, so that a store made anew under the same address is not served old rows.
INSERT INTO state (key, value) VALUES ('identity', replace(gen_random_uuid()::text, '-', ''));

CREATE TABLE content (
  sha256 text PRIMARY KEY CHECK (sha256 = encode(sha256(body), 'hex')),
  body bytea NOT NULL);
-- line: versions are numbered per origin, slug and line. What a role publishes into its own workspace is a line of its own, so that
-- numbers neither collide nor tell what others keep to themselves.
CREATE TABLE version (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  origin text NOT NULL CHECK (origin IN ('library', 'workspace', 'team')),
  slug text COLLATE "C" NOT NULL CHECK (slug ~ '^[a-z0-9]([a-z0-9-]*[a-z0-9])?$' AND length(slug) <= 96),
  line text NOT NULL,
  n integer NOT NULL CHECK (n > 0),
  sha256 text NOT NULL REFERENCES content (sha256),
  kind text NOT NULL,
  provenance text NOT NULL,
  tier integer NOT NULL,
  author text NOT NULL,
  created_ns bigint NOT NULL,
  visibility text NOT NULL CHECK (visibility IN ('private', 'team', 'public')),
  parent text,
  language_share double precision NOT NULL CHECK (language_share BETWEEN 0 AND 1),
  length integer NOT NULL,
  generation bigint NOT NULL,
  owner text NOT NULL,
  audience text NOT NULL,
  request uuid UNIQUE,
  UNIQUE (origin, slug, line, n),
  CHECK (origin <> 'workspace' OR visibility = 'private'),
  CHECK (audience = CASE visibility WHEN 'private' THEN '@' || owner ELSE visibility END));
CREATE INDEX version_by_slug ON version (slug);
CREATE INDEX version_by_hash ON version (sha256);
-- The newest visible version of each slug, for everyone who sees what is public, for members, and for a member whose own private
-- versions change the answer. A cache, kept in the same transaction.
CREATE TABLE heads (
  audience text NOT NULL,
  slug text COLLATE "C" NOT NULL,
  version_id bigint NOT NULL REFERENCES version (id),
  PRIMARY KEY (audience, slug));
CREATE INDEX heads_by_version ON heads (version_id) INCLUDE (audience, slug);
CREATE TABLE facet (
  name text COLLATE "C" NOT NULL CHECK (name IN ('cause', 'model_type', 'family')),
  value text COLLATE "C" NOT NULL,
  version_id bigint NOT NULL REFERENCES version (id),
  audience text NOT NULL,
  PRIMARY KEY (name, value, version_id) INCLUDE (audience));
CREATE TABLE posting (
  token text COLLATE "C" NOT NULL,
  version_id bigint NOT NULL REFERENCES version (id),
  count integer NOT NULL CHECK (count > 0),
  length integer NOT NULL,
  audience text NOT NULL,
  PRIMARY KEY (token, version_id) INCLUDE (count, length, audience));
CREATE INDEX posting_by_version ON posting (version_id);
CREATE TABLE embedding (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  version_id bigint NOT NULL REFERENCES version (id),
  field text NOT NULL,
  model_id text NOT NULL,
  dim integer NOT NULL CHECK (dim > 0 AND dim = vector_dims(vector)),
  generation bigint NOT NULL,
  audience text NOT NULL,
  vector vector NOT NULL,
  UNIQUE (model_id, version_id, field));
-- In the row itself: a scan that follows a pointer for each vector takes several times as long.
ALTER TABLE embedding ALTER COLUMN vector SET STORAGE PLAIN;
CREATE INDEX embedding_by_generation ON embedding (model_id, generation);
CREATE TABLE event (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  kind text NOT NULL,
  subject text NOT NULL REFERENCES content (sha256),
  author text NOT NULL,
  at_ns bigint NOT NULL,
  detail jsonb NOT NULL CHECK (jsonb_typeof(detail) = 'object'),
  generation bigint NOT NULL,
  owner text NOT NULL,
  audience text NOT NULL,
  request uuid UNIQUE);
CREATE INDEX event_by_subject ON event (subject, kind);
CREATE INDEX event_by_kind ON event (kind, subject);
CREATE TABLE attachment (
  version_id bigint NOT NULL REFERENCES version (id),
  sha256 text NOT NULL,
  audience text NOT NULL,
  PRIMARY KEY (sha256, version_id));
CREATE TABLE artefact (
  sha256 text NOT NULL PRIMARY KEY CHECK (sha256 = encode(sha256(body), 'hex')),
  body bytea NOT NULL);
-- Captures are compressed files already.
ALTER TABLE artefact ALTER COLUMN body SET STORAGE EXTERNAL;
-- Who put an artefact: it may be read before a version names it.
CREATE TABLE deposit (sha256 text NOT NULL REFERENCES artefact (sha256), owner text NOT NULL, PRIMARY KEY (sha256, owner));
CREATE TABLE audit (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  role text NOT NULL DEFAULT session_user,
  address text DEFAULT coalesce(host(inet_client_addr()), 'local'),
  program text DEFAULT current_setting('application_name'),
  action text NOT NULL,
  subject text NOT NULL,
  generation bigint NOT NULL);

-- What is written stays as it is, for the owner of the tables too.
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql SET search_path = {path} AS $$
BEGIN
  RAISE EXCEPTION '% rows are never changed', TG_TABLE_NAME USING ERRCODE = 'KB004';
END $$;
DO $$
DECLARE name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['content', 'version', 'facet', 'posting', 'embedding', 'event', 'attachment', 'artefact', 'deposit', 'audit'] LOOP
    EXECUTE format('CREATE TRIGGER %I BEFORE UPDATE OR DELETE ON %I FOR EACH ROW EXECUTE FUNCTION refuse_change()', name || '_no_change', name);
    EXECUTE format('CREATE TRIGGER %I BEFORE TRUNCATE ON %I FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()', name || '_no_truncate', name);
  END LOOP;
END $$;

-- Audiences of this session.
CREATE FUNCTION mine() RETURNS text LANGUAGE sql STABLE PARALLEL SAFE AS $$ SELECT '@' || session_user $$;
CREATE FUNCTION shared() RETURNS text LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN pg_has_role(session_user, {member_name}, 'MEMBER') THEN 'team' ELSE 'public' END $$;
CREATE FUNCTION maintains() RETURNS boolean LANGUAGE sql STABLE AS $$ SELECT pg_has_role(session_user, {maintainer_name}, 'MEMBER') $$;
-- The sub-selects: once a query, not once a row.
CREATE VIEW head WITH (security_invoker = true) AS
  SELECT h.version_id, h.slug FROM heads h
  LEFT JOIN heads m ON m.audience = (SELECT mine()) AND m.slug = h.slug AND h.audience <> (SELECT mine())
  WHERE h.audience = ANY (ARRAY[(SELECT mine()), (SELECT shared())]) AND m.slug IS NULL;

CREATE FUNCTION advance() RETURNS bigint LANGUAGE sql SET search_path = {path} AS $$
  UPDATE counter SET generation = generation + 1 RETURNING generation $$;
-- Writers stand in one queue: generations, numbers and row ids come in the order of the commits.
CREATE FUNCTION queue() RETURNS void LANGUAGE sql SET search_path = {path} AS $$
  SELECT generation FROM counter FOR UPDATE $$;
CREATE FUNCTION note(p_action text, p_subject text, p_generation bigint) RETURNS void LANGUAGE sql SET search_path = {path} AS $$
  INSERT INTO audit (action, subject, generation) VALUES (p_action, p_subject, p_generation) $$;

CREATE FUNCTION withdrawn(p_sha256 text, p_origin text, p_seen text[]) RETURNS boolean LANGUAGE sql STABLE SET search_path = {path} AS $$
  SELECT coalesce((
    SELECT e.kind = 'yanked' FROM event e
    WHERE e.subject = p_sha256 AND e.kind IN ('yanked', 'restored') AND e.audience = ANY (p_seen)
      AND coalesce(e.detail ->> 'origin', p_origin) = p_origin
    ORDER BY e.id DESC LIMIT 1), false) $$;

CREATE FUNCTION newest_visible(p_slug text, p_seen text[]) RETURNS bigint LANGUAGE sql STABLE SET search_path = {path} AS $$
  SELECT v.id FROM version v
  WHERE v.slug = p_slug AND v.audience = ANY (p_seen) AND NOT withdrawn(v.sha256, v.origin, p_seen)
  ORDER BY CASE v.origin WHEN 'workspace' THEN 0 WHEN 'team' THEN 1 ELSE 2 END, v.n DESC LIMIT 1 $$;

CREATE FUNCTION refresh_head(p_slug text) RETURNS void LANGUAGE plpgsql SET search_path = {path} AS $$
DECLARE
  seer text;
  common bigint := newest_visible(p_slug, ARRAY['public', 'team']);
  own bigint;
BEGIN
  DELETE FROM heads WHERE slug = p_slug;
  INSERT INTO heads SELECT 'public', p_slug, best FROM newest_visible(p_slug, ARRAY['public']) best WHERE best IS NOT NULL;
  INSERT INTO heads SELECT 'team', p_slug, common WHERE common IS NOT NULL;
  FOR seer IN SELECT DISTINCT audience FROM version WHERE slug = p_slug AND audience LIKE '@%' LOOP
    own := newest_visible(p_slug, ARRAY['public', 'team', seer]);
    INSERT INTO heads SELECT seer, p_slug, own WHERE own <> common OR common IS NULL AND own IS NOT NULL;
  END LOOP;
END $$;

CREATE FUNCTION add_vectors(p_id bigint, p_audience text, p_model text, p_fields text[], p_vectors vector[], p_generation bigint)
RETURNS void LANGUAGE sql SET search_path = {path} AS $$
  INSERT INTO embedding (version_id, field, model_id, dim, generation, audience, vector)
  SELECT p_id, field, p_model, vector_dims(made), p_generation, p_audience, made
  FROM unnest(p_fields, p_vectors) WITH ORDINALITY AS given (field, made, place) ORDER BY place $$;

CREATE FUNCTION add_remarks(p_subject text, p_audience text, p_remarks jsonb, p_generation bigint)
RETURNS void LANGUAGE sql SET search_path = {path} AS $$
  INSERT INTO event (kind, subject, author, at_ns, detail, generation, owner, audience)
  SELECT said ->> 'kind', p_subject, said ->> 'author', (said ->> 'at_ns')::bigint, said -> 'detail', p_generation, session_user, p_audience
  FROM jsonb_array_elements(p_remarks) WITH ORDINALITY AS given (said, place) ORDER BY place $$;

-- One publication. A repeated request returns what the first one made; content equal to the newest version the caller sees returns that
-- version, with missing vectors and remarks added. KB001: another parent; KB002: another width; KB003: not this role's to do.
CREATE FUNCTION publish(
  p_request uuid, p_body bytea, p_origin text, p_visibility text, p_author text, p_created_ns bigint, p_expect_parent text,
  p_language_share double precision, p_tokens text[], p_counts integer[], p_facet_names text[], p_facet_values text[],
  p_model text, p_dim integer, p_fields text[], p_vectors vector[], p_remarks jsonb,
  OUT r_id bigint, OUT r_n integer, OUT r_sha256 text, OUT r_author text, OUT r_created_ns bigint, OUT r_visibility text,
  OUT r_parent text, OUT r_generation bigint, OUT r_created boolean)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = {path} AS $$
DECLARE
  said json := convert_from(p_body, 'UTF8')::json;
  p_slug text := said ->> 'slug';
  p_line text := CASE p_origin WHEN 'workspace' THEN mine() ELSE '' END;
  p_audience text := CASE p_visibility WHEN 'private' THEN mine() ELSE p_visibility END;
  p_provenance text := coalesce(said ->> 'provenance', 'claimed');
  p_length integer := coalesce((SELECT sum(c) FROM unnest(p_counts) c), 0);
  newest version%ROWTYPE;
  known version%ROWTYPE;
  width integer;
  fresh text[];
  remarks jsonb;
BEGIN
  PERFORM queue();
  r_sha256 := encode(sha256(p_body), 'hex');
  SELECT * INTO known FROM version WHERE request = p_request;
  IF FOUND THEN
    SELECT known.id, known.n, known.sha256, known.author, known.created_ns, known.visibility, known.parent, known.generation, true
    INTO r_id, r_n, r_sha256, r_author, r_created_ns, r_visibility, r_parent, r_generation, r_created;
    RETURN;
  END IF;
  IF p_origin = 'library' AND NOT maintains() THEN
    RAISE EXCEPTION 'only a maintainer writes the library' USING ERRCODE = 'KB003';
  END IF;
  SELECT dim INTO width FROM embedding WHERE model_id = p_model LIMIT 1;
  IF width <> p_dim AND cardinality(p_fields) > 0 THEN
    RAISE EXCEPTION 'width' USING ERRCODE = 'KB002', DETAIL = width::text;
  END IF;
  SELECT * INTO newest FROM version v
  WHERE v.origin = p_origin AND v.slug = p_slug AND v.line = p_line AND v.audience IN ('public', 'team', mine())
  ORDER BY v.n DESC LIMIT 1;
  IF newest.sha256 = r_sha256 THEN
    r_created := false;
    SELECT newest.id, newest.n, newest.author, newest.created_ns, newest.visibility, newest.parent, newest.generation
    INTO r_id, r_n, r_author, r_created_ns, r_visibility, r_parent, r_generation;
    SELECT array_agg(f) INTO fresh FROM unnest(p_fields) f
    WHERE NOT EXISTS (SELECT FROM embedding e WHERE e.version_id = newest.id AND e.model_id = p_model AND e.field = f);
    IF fresh IS NOT NULL THEN
      PERFORM add_vectors(newest.id, newest.audience, p_model, array_agg(f), array_agg(v), advance())
      FROM unnest(p_fields, p_vectors) AS given (f, v) WHERE f = ANY (fresh);
      PERFORM note('add vectors', p_origin || ':' || p_slug || '@' || newest.n, (SELECT generation FROM counter));
    END IF;
    SELECT jsonb_agg(remark) INTO remarks FROM jsonb_array_elements(p_remarks) remark
    WHERE NOT EXISTS (SELECT FROM event e WHERE e.subject = r_sha256 AND e.kind = remark ->> 'kind'
                      AND e.audience IN ('public', 'team', mine()));
    IF remarks IS NOT NULL THEN
      PERFORM add_remarks(r_sha256, newest.audience, remarks, advance());
      PERFORM note('add remarks', p_origin || ':' || p_slug || '@' || newest.n, (SELECT generation FROM counter));
    END IF;
    RETURN;
  END IF;
  IF p_expect_parent IS NOT NULL AND p_expect_parent IS DISTINCT FROM newest.sha256 THEN
    RAISE EXCEPTION 'parent' USING ERRCODE = 'KB001', DETAIL = coalesce(newest.n || ' ' || newest.sha256, '');
  END IF;
  r_generation := advance();
  -- All of the line, seen or not: a number is never given twice.
  SELECT coalesce(max(v.n), 0) + 1 INTO r_n FROM version v WHERE v.origin = p_origin AND v.slug = p_slug AND v.line = p_line;
  r_parent := newest.sha256;
  r_author := p_author;
  r_created_ns := p_created_ns;
  r_visibility := p_visibility;
  r_created := true;
  INSERT INTO content (sha256, body) VALUES (r_sha256, p_body) ON CONFLICT DO NOTHING;
  INSERT INTO version (origin, slug, line, n, sha256, kind, provenance, tier, author, created_ns, visibility, parent, language_share,
                       length, generation, owner, audience, request)
  VALUES (p_origin, p_slug, p_line, r_n, r_sha256, said ->> 'kind', p_provenance,
          array_position(ARRAY['claimed', 'simulated', 'measured', 'reproduced'], p_provenance) - 1, p_author, p_created_ns, p_visibility,
          r_parent, p_language_share, p_length, r_generation, session_user, p_audience, p_request)
  RETURNING id INTO r_id;
  INSERT INTO event (kind, subject, author, at_ns, detail, generation, owner, audience)
  VALUES ('published', r_sha256, p_author, p_created_ns, jsonb_build_object('origin', p_origin, 'slug', p_slug, 'n', r_n), r_generation,
          session_user, p_audience);
  INSERT INTO posting (token, version_id, count, length, audience)
  SELECT token, r_id, count, p_length, p_audience FROM unnest(p_tokens, p_counts) AS given (token, count);
  INSERT INTO facet (name, value, version_id, audience)
  SELECT name, value, r_id, p_audience FROM unnest(p_facet_names, p_facet_values) AS given (name, value);
  INSERT INTO attachment (version_id, sha256, audience)
  SELECT DISTINCT r_id, named, p_audience FROM json_array_elements_text(coalesce(said -> 'sessions', '[]'::json)) named;
  PERFORM add_vectors(r_id, p_audience, p_model, p_fields, p_vectors, r_generation);
  PERFORM add_remarks(r_sha256, p_audience, p_remarks, r_generation);
  PERFORM refresh_head(p_slug);
  PERFORM note('publish', p_origin || ':' || p_slug || '@' || r_n, r_generation);
END $$;

-- One event; its id. KB003: only the owner of a version or a maintainer withdraws, restores or deprecates. KB005: nothing visible has
-- this content.
CREATE FUNCTION append(p_request uuid, p_kind text, p_subject text, p_author text, p_at_ns bigint, p_detail jsonb) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = {path} AS $$
DECLARE
  made bigint;
  now bigint;
  about version%ROWTYPE;
  name text;
BEGIN
  PERFORM queue();
  SELECT id INTO made FROM event WHERE request = p_request;
  IF FOUND THEN
    RETURN made;
  END IF;
  -- The version it speaks about: the one named, else the one most people see.
  SELECT * INTO about FROM version v
  WHERE v.sha256 = p_subject AND v.audience IN ('public', 'team', mine())
  ORDER BY (v.origin = p_detail ->> 'origin') DESC NULLS LAST, (v.n::text = p_detail ->> 'n') DESC NULLS LAST,
    array_position(ARRAY['public', 'team'], v.audience) NULLS LAST, v.id DESC LIMIT 1;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'no version' USING ERRCODE = 'KB005';
  END IF;
  IF p_kind = 'published' THEN
    RAISE EXCEPTION 'publishing says this itself' USING ERRCODE = 'KB003';
  END IF;
  IF p_kind IN ('yanked', 'restored', 'deprecated') AND NOT maintains() AND EXISTS (
      SELECT FROM version v WHERE v.sha256 = p_subject AND v.audience IN ('public', 'team', mine()) AND v.owner <> session_user
        AND coalesce(p_detail ->> 'origin', v.origin) = v.origin) THEN
    RAISE EXCEPTION 'only who published it or a maintainer may say %', p_kind USING ERRCODE = 'KB003';
  END IF;
  now := advance();
  INSERT INTO event (kind, subject, author, at_ns, detail, generation, owner, audience, request)
  VALUES (p_kind, p_subject, p_author, p_at_ns, p_detail, now, session_user, about.audience, p_request) RETURNING id INTO made;
  IF p_kind IN ('yanked', 'restored') THEN
    FOR name IN SELECT DISTINCT slug FROM version WHERE sha256 = p_subject LOOP
      PERFORM refresh_head(name);
    END LOOP;
  END IF;
  PERFORM note(p_kind, p_subject, now);
  RETURN made;
END $$;

CREATE FUNCTION set_state(p_key text, p_value text) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = {path} AS $$
BEGIN
  IF NOT maintains() OR p_key = 'identity' THEN
    RAISE EXCEPTION 'only a maintainer sets %', p_key USING ERRCODE = 'KB003';
  END IF;
  PERFORM queue();
  INSERT INTO state (key, value) VALUES (p_key, p_value) ON CONFLICT (key) DO UPDATE SET value = excluded.value;
  PERFORM note('set state', p_key, advance());
END $$;

CREATE FUNCTION rebuild_heads() RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = {path} AS $$
BEGIN
  IF NOT maintains() THEN
    RAISE EXCEPTION 'only a maintainer rebuilds the heads' USING ERRCODE = 'KB003';
  END IF;
  PERFORM queue();
  PERFORM refresh_head(slug) FROM (SELECT DISTINCT slug FROM version) AS every;
  PERFORM note('rebuild heads', '', advance());
END $$;

CREATE FUNCTION keep_artefact(p_body bytea) RETURNS text LANGUAGE plpgsql SECURITY DEFINER SET search_path = {path} AS $$
DECLARE named text := encode(sha256(p_body), 'hex');
BEGIN
  INSERT INTO artefact (sha256, body) VALUES (named, p_body) ON CONFLICT DO NOTHING;
  INSERT INTO deposit (sha256, owner) VALUES (named, session_user) ON CONFLICT DO NOTHING;
  PERFORM note('keep artefact', named, (SELECT generation FROM counter));
  RETURN named;
END $$;

DO $$
DECLARE name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['version', 'heads', 'facet', 'posting', 'embedding', 'event', 'attachment'] LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
    EXECUTE format('CREATE POLICY public_rows ON %I FOR SELECT TO %I USING (audience = ''public'')', name, {guest_name});
    EXECUTE format('CREATE POLICY team_rows ON %I FOR SELECT TO %I USING (audience = ''team'' OR audience = ''@'' || session_user)', name, {member_name});
  END LOOP;
END $$;
-- What has no audience of its own is seen through the rows that name it, which the same rules hide.
ALTER TABLE content ENABLE ROW LEVEL SECURITY;
CREATE POLICY named ON content FOR SELECT TO {guest} USING (EXISTS (SELECT FROM version v WHERE v.sha256 = content.sha256));
ALTER TABLE deposit ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON deposit FOR SELECT TO {member} USING (owner = session_user);
ALTER TABLE artefact ENABLE ROW LEVEL SECURITY;
CREATE POLICY named ON artefact FOR SELECT TO {guest} USING (
  EXISTS (SELECT FROM attachment a WHERE a.sha256 = artefact.sha256) OR EXISTS (SELECT FROM deposit d WHERE d.sha256 = artefact.sha256));

REVOKE ALL ON ALL TABLES IN SCHEMA casebook FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA casebook FROM PUBLIC;
GRANT SELECT ON counter, state, content, version, heads, head, facet, posting, embedding, event, attachment, artefact, deposit, migration
  TO {guest};
GRANT SELECT ON audit TO {maintainer};
GRANT EXECUTE ON FUNCTION mine(), shared(), maintains() TO {guest};
GRANT EXECUTE ON FUNCTION publish, append(uuid, text, text, text, bigint, jsonb), keep_artefact(bytea) TO {member};
GRANT EXECUTE ON FUNCTION set_state(text, text), rebuild_heads() TO {maintainer};
