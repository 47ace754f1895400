import type { SettingsReader } from './settings-reader.js';

/**
 * Splits a PostgreSQL URI into one URI for each host. As in libpq, a URI may list several hosts:
 * `postgresql://host1:5432,host2:5432/petstore`.
 */
export function hostUris(uri: string): string[] {
  const [, start = uri, hosts = '', end = ''] = /^([^/]*\/\/(?:[^/?#]*@)?)([^/?#]*)(.*)$/s.exec(uri) ?? [];
  return hosts.split(',').map((host) => start + host + end);
}

/** Reads a setting that holds the URI of a primary. */
export function readDatabaseUri(settings: SettingsReader, name: string): string | undefined {
  const value = settings.text(name);
  return value === undefined ? undefined : checked(settings, name, value);
}

/** Reads DATABASE_REPLICA_URLS. */
export function readReplicaUris(settings: SettingsReader): string[] {
  return settings.list('DATABASE_REPLICA_URLS').map((value) => replicaUri(settings, value));
}

function checked(settings: SettingsReader, name: string, value: string): string {
  const fault = hostUris(value)
    .map(unmetRequirement)
    .find((requirement) => requirement !== undefined);
  return fault === undefined ? value : settings.reject(name, fault, value);
}

/** What the URI of one host must be and is not; undefined for a valid one. */
function unmetRequirement(uri: string): string | undefined {
  const url = URL.canParse(uri) ? new URL(uri) : undefined;
  const isOfPostgresql = url?.protocol === 'postgresql:' || url?.protocol === 'postgres:';
  // A parameter may name the host, such as the directory of a socket.
  if (!isOfPostgresql || (url.hostname === '' && url.search === '')) {
    return 'a PostgreSQL URI such as postgresql://user:password@host:5432/petstore';
  }
  const { searchParams: parameters } = url;
  if (/,/.test(`${parameters.get('host') ?? ''}${parameters.get('port') ?? ''}`)) {
    return 'a URI that lists hosts before the path: postgresql://host1:5432,host2:5432/petstore';
  }
  if (!['read-write', 'primary'].includes(parameters.get('target_session_attrs') ?? 'primary')) {
    return 'a URI whose target_session_attrs is read-write or primary: the service makes changes';
  }
  return undefined;
}

function replicaUri(settings: SettingsReader, value: string): string {
  return URL.canParse(value) && new URL(value).searchParams.has('target_session_attrs')
    ? settings.reject('DATABASE_REPLICA_URLS', 'URIs of one replica each, without target_session_attrs', value)
    : checked(settings, 'DATABASE_REPLICA_URLS', value);
}
