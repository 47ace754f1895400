const DATE_TIME =
  /^(\d{4}-\d{2}-\d{2})[Tt]([01]\d|2[0-3]):([0-5]\d):([0-5]\d|60)(?:\.(\d+))?(?:[Zz]|([+-])([01]\d|2[0-3]):([0-5]\d))$/;

/** The years that PostgreSQL, JavaScript and RFC 3339 write alike: 1 to 9999. */
const EARLIEST = Date.parse('0001-01-01T00:00:00.000Z');
const LATEST = Date.parse('9999-12-31T23:59:59.999Z');

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const DAY = 24 * 60 * MINUTE;

/** Whether a text is a `full-date` of RFC 3339, `YYYY-MM-DD`, and a day of the Gregorian calendar in the years 1 to 9999. */
export function isFullDate(text: string): boolean {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return false;
  const time = Date.parse(`${text}T00:00:00Z`);
  // Date.parse turns the 31st of February into the 3rd of March.
  return time >= EARLIEST && new Date(time).toISOString().startsWith(text);
}

/**
 * The instant of a `date-time` of RFC 3339, which always has an offset; undefined for any other text, and outside of the
 * years 1 to 9999 in UTC. Digits beyond milliseconds are cut. A leap second, valid only at the end of a UTC day, becomes
 * the instant that follows it.
 */
export function parseDateTime(text: string): Date | undefined {
  const [, date, hours, minutes, seconds, fraction = '', sign, offsetHours, offsetMinutes] = DATE_TIME.exec(text) ?? [];
  if (date === undefined || !isFullDate(date)) return undefined;
  const offset = sign === undefined ? 0 : Number(`${sign}1`) * (Number(offsetHours) * 60 + Number(offsetMinutes));
  const isLeapSecond = seconds === '60';
  const milliseconds = isLeapSecond ? 0 : Number(fraction.slice(0, 3).padEnd(3, '0'));
  const time =
    Date.parse(`${date}T00:00:00Z`) +
    (Number(hours) * 60 + Number(minutes) - offset) * MINUTE +
    Number(seconds) * SECOND +
    milliseconds;
  if (time < EARLIEST || time > LATEST || (isLeapSecond && time % DAY !== 0)) return undefined;
  return new Date(time);
}
