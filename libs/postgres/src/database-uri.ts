import { WrongValue } from '#settings';

/** What DATABASE_URL and settings of its kind accept. */
export const POSTGRESQL_URI = 'a PostgreSQL URI such as postgresql://user:password@host:5432/database';

/** Scheme, user and password, host and port, path, query. The authority ends at the first of / ? # (RFC 3986, section 3.2). */
const PARTS = /^(postgres(?:ql)?:\/\/)([^/?#]*@)?([^/?#]*)([^?#]*)(\?[^#]*)?(#?)/i;

const SSL_MODES = ['disable', 'no-verify', 'prefer', 'require', 'verify-ca', 'verify-full'];

/** Modes of libpq that pg 8 treats as `verify-full`, with a warning that pg 9 will not. */
const STRICTER_THAN_NAMED = /^(prefer|require|verify-ca)$/;

const NOT_ENCODED =
  'a user, password or path with one of the characters @ / ? # must have them percent-encoded, such as %40 for @';

/**
 * The URI of one PostgreSQL server, as PostgreSQL's manual defines connection URIs, in the form that pg and `new URL` read
 * alike: host, port and database are in front of the query, where a parameter may have named them.
 *
 * @returns undefined for what is no such URI
 * @throws WrongValue, which says what is wrong with the URI
 */
export function parseDatabaseUri(text: string): string | undefined {
  if (/^\w+\s*=/.test(text)) throw fault('pairs such as host=… are not read');
  // A % that begins no escape is meant as it stands.
  const parts = PARTS.exec(text.replace(/%(?![0-9a-f]{2})/gi, '%25'));
  if (parts === null) return undefined;
  const [, scheme = '', user = '', server = '', path = '', query = '', fragment = ''] = parts;
  const parameters = new URLSearchParams(query);
  if (fragment !== '' || path.includes('@') || [...parameters.keys()].some((key) => key.includes('@'))) {
    throw fault(NOT_ENCODED);
  }
  const take = (name: string): string => {
    const value = parameters.get(name) ?? '';
    parameters.delete(name);
    return value;
  };
  const [host, port, database] = [take('host'), take('port'), take('dbname')];
  if (`${server}${host}${port}`.includes(',')) throw fault('it names several hosts; name one, such as that of a proxy');
  const isNameless = /^(:|$)/.test(server);
  if (isNameless && host === '') throw fault('it names no host');
  // URL accepts no user, password or port without a host.
  const uri = `${scheme}${user}${isNameless ? 'host' : ''}${server}${path}`;
  if (!URL.canParse(uri) || !/^\d{0,5}$/.test(port) || Number(port) > 65_535) return undefined;
  const url = new URL(uri);
  // Escaped, a directory with slashes and colons is a host, too.
  if (host !== '') url.hostname = encodeURIComponent(host);
  if (port !== '') url.port = port;
  if (database !== '') url.pathname = `/${encodeURI(database)}`;
  const mode = parameters.get('sslmode');
  if (mode !== null && !SSL_MODES.includes(mode)) throw fault(`its sslmode must be one of ${SSL_MODES.join(', ')}`);
  if (STRICTER_THAN_NAMED.test(mode ?? '') && !parameters.has('uselibpqcompat'))
    parameters.set('sslmode', 'verify-full');
  url.search = parameters.toString();
  return url.href;
}

function fault(what: string): WrongValue {
  return new WrongValue(`${POSTGRESQL_URI}: ${what}`);
}

/** Host and port of a URI of `parseDatabaseUri`, for people. */
export function serverOf(uri: string): string {
  return decodeURIComponent(new URL(uri).host);
}
