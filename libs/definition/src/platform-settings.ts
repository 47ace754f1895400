import { API_KEY_SETTINGS } from '#access';
import { EMBEDDED_SETTINGS } from '#embedded-postgres';
import { DRAIN_SETTINGS, REQUEST_LOG_SETTINGS, SERVER_SETTINGS } from '#edge';
import { BODY_SETTINGS } from '#input';
import { LOG_SETTINGS, METRICS_SETTINGS } from '#ops';
import { DEPRECATION_SETTINGS, DOCUMENT_SETTINGS } from '#operations';
import { DATABASE_SETTINGS, POOL_SETTINGS, STATEMENT_SETTINGS } from '#postgres';
import { type Config, integer, nearestName, optional, parseList, type SettingsOf } from '#settings';

/** The settings of every service, in the order of `.env.example`, by the member of `CoreConfig` that has the value. */
export const CORE_SETTINGS = {
  port: integer('PORT', 3_000, [0, 65_535], 'TCP port to listen on; 0 lets the system choose.'),
  host: optional(
    'HOST',
    'an address of this machine',
    'Address to listen on. The default is all IPv4 addresses, so that the service works in a container.',
    (address) => address,
    '0.0.0.0',
    '0.0.0.0',
  ),
  ...DATABASE_SETTINGS,
  ...EMBEDDED_SETTINGS,
  ...POOL_SETTINGS,
  ...STATEMENT_SETTINGS,
  ...API_KEY_SETTINGS,
  ...METRICS_SETTINGS,
  ...DOCUMENT_SETTINGS,
  corsOrigins: optional(
    'CORS_ORIGINS',
    'origins such as https://app.example.com, or capacitor://localhost of an app, separated by commas: in lower case and ASCII (xn--…), ' +
      'without wildcard, default port, path or slash at the end',
    'Origins whose pages may call the API from a browser (CORS) or from an app such as capacitor://localhost, separated by commas. ' +
      'Not set: none.',
    parseList((text) => (isOrigin(text) ? text : undefined)),
    [] as string[],
  ),
  ...DEPRECATION_SETTINGS,
  ...BODY_SETTINGS,
  ...SERVER_SETTINGS,
  ...DRAIN_SETTINGS,
  ...LOG_SETTINGS,
  ...REQUEST_LOG_SETTINGS,
};

/** The settings of one process, without those of parts. Libraries inject their own by `Config`. */
export type CoreConfig = Config & SettingsOf<typeof CORE_SETTINGS>;

/**
 * Whether a text is an origin as browsers send it (RFC 6454, section 6.2); any other would never match. `URL` knows no origins of the
 * schemes of apps.
 */
function isOrigin(text: string): boolean {
  if (/^https?:\/\/[^*]+$/.test(text)) return URL.canParse(text) && new URL(text).origin === text;
  const [, scheme] = /^([a-z][a-z\d+.-]*):\/\/[a-z\d._-]+(:\d+)?$/.exec(text) ?? [];
  return (
    scheme !== undefined && !/^(file|ftp|wss?)$/.test(scheme) && nearestName(scheme, ['http', 'https']) === undefined
  );
}
