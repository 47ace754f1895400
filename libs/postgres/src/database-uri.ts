import { withEscapes, WrongValue } from '#settings';

/** What DATABASE_URL and settings of its kind accept. */
export const POSTGRESQL_URI = 'a PostgreSQL URI such as postgresql://user:password@host:5432/database';

/** Scheme, user and password, host and port, path, query. The authority ends at the first of / ? # (RFC 3986, section 3.2). */
const PARTS = /^(postgres(?:ql)?:\/\/)([^/?#]*@)?([^/?#]*)([^?#]*)(\?[^#]*)?(#?)/i;

const SSL_MODES = ['disable', 'no-verify', 'prefer', 'require', 'verify-ca', 'verify-full'];

/** Parameters that pg reads. With its `ssl=false`, it would throw in an event handler, which would end the process. */
const READ = [
  ...['user', 'password', 'options', 'application_name', 'fallback_application_name', 'client_encoding'],
  ...['sslmode', 'sslcert', 'sslkey', 'sslrootcert', 'sslnegotiation', 'uselibpqcompat'],
  ...['statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout', 'query_timeout'],
];

/** Parameters of libpq that pg ignores, and without which a connection leads to the same server and is as safe. */
const HARMLESS =
  /^(connect_timeout|keepalives.*|tcp_user_timeout|target_session_attrs|load_balance_hosts|gss.*|krbsrvname|sslsni|sslcompression|channel_binding)$/;

/** Modes of libpq that pg 8 treats as `verify-full`, with a warning that pg 9 will not. */
const STRICTER_THAN_NAMED = /^(prefer|require|verify-ca)$/;

/**
 * The URI of one PostgreSQL server, as PostgreSQL's manual defines connection URIs, in the form that pg and `new URL` read
 * alike: the host is in front of the query, where a parameter may have named it, such as the directory of a socket.
 *
 * @returns undefined for what is no such URI
 * @throws WrongValue, which says what is wrong with the URI
 */
export function parseDatabaseUri(text: string): string | undefined {
  if (/^\w+\s*=/.test(text)) throw fault('pairs such as host=… are not read');
  const escaped = withEscapes(text);
  if (escaped === undefined) throw fault('its percent-encoding is not that of UTF-8');
  const parts = PARTS.exec(escaped);
  if (parts === null) return undefined;
  const [, scheme = '', user = '', server = '', path = '', query = '', fragment = ''] = parts;
  const parameters = new URLSearchParams(query);
  if (fragment !== '' || path.includes('@') || [...parameters.keys()].some((key) => key.includes('@'))) {
    throw fault('a user, password or path with one of @ / ? # must have them percent-encoded, such as %40 for @');
  }
  const host = parameters.get('host') ?? '';
  parameters.delete('host');
  if (`${server}${host}`.includes(',')) throw fault('it names several hosts; name one, such as that of a proxy');
  const isNameless = /^(:|$)/.test(server);
  if (isNameless && host === '') throw fault('it names no host');
  // URL accepts no user, password or port without a host.
  const uri = `${scheme}${user}${isNameless ? 'host' : ''}${server}${path}`;
  if (!URL.canParse(uri)) return undefined;
  const url = new URL(uri);
  // Escaped, a directory with slashes and colons is a host, too.
  if (host !== '') url.hostname = encodeURIComponent(host);
  // As pg decodes it.
  if (decodeURI(path) !== decodeURIComponent(path))
    throw fault('pg reads no database with / ? # : @ & = + $ , ; in its name');
  // libpq's name for the authorities of the program, only with full verification. Without a file, Node takes its own.
  if (parameters.get('sslrootcert') === 'system') {
    parameters.delete('sslrootcert');
    parameters.set('sslmode', 'verify-full');
  }
  const mode = parameters.get('sslmode');
  if (mode !== null && !SSL_MODES.includes(mode)) throw fault(`its sslmode must be one of ${SSL_MODES.join(', ')}`);
  if (STRICTER_THAN_NAMED.test(mode ?? '') && !parameters.has('uselibpqcompat'))
    parameters.set('sslmode', 'verify-full');
  // A parameter without effect is refused: with `sslmod=require`, nothing would be encrypted. A wrong name may be part of a password.
  if ([...parameters.keys()].some((key) => !READ.includes(key) && !HARMLESS.test(key)))
    throw fault(`it has a parameter that is not read; read are host, ${READ.join(', ')}`);
  url.search = parameters.toString();
  return url.href;
}

function fault(what: string): WrongValue {
  return new WrongValue(`${POSTGRESQL_URI}: ${what}`);
}
