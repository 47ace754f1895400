import { QueryFailedError } from 'typeorm';
import { ApiError } from '../../errors/api-error.js';
import { UNAVAILABLE } from '../../errors/error-catalogue.js';
import { asUnavailable, ConnectionFileError } from './connection-errors.js';

const failure = (code: string | undefined, message = 'message'): Error => Object.assign(new Error(message), { code });

test.each([
  ...[
    'ECONNREFUSED',
    'ECONNRESET',
    'ETIMEDOUT',
    'ENOTFOUND',
    'EPIPE',
    'EHOSTDOWN',
    'ECONNABORTED',
    'ERR_SSL_SSLV3_ALERT_CLOSE_NOTIFY',
  ],
  ...['08006', '25006', '28P01', '3D000', '53100', '53300', '57014', '57P01', '57P02', '57P03', '58030', '25P04'],
])('503: %s', (code) => {
  const error = failure(code);
  for (const thrown of [error, new QueryFailedError('SELECT', [], error)]) {
    const answer = asUnavailable(thrown) as ApiError;
    expect(answer).toBeInstanceOf(ApiError);
    expect([answer.definition, answer.headers, answer.cause]).toEqual([UNAVAILABLE, { 'Retry-After': '1' }, thrown]);
    expect(answer.message).not.toContain(error.message);
  }
});

test.each([
  'Connection terminated unexpectedly',
  'Connection terminated due to connection timeout',
  'timeout exceeded when trying to connect',
  'Query read timeout',
  'Cannot use a pool after calling end on the pool',
  'Client has encountered a connection error and is not queryable',
])('503: "%s"', (message) => {
  expect(asUnavailable(failure(undefined, message))).toBeInstanceOf(ApiError);
});

test.each([
  ['database_away', 'ECONNREFUSED', 'connect ECONNREFUSED'],
  ['database_away', '57P03', 'the database system is starting up'],
  ['database_away', undefined, 'Connection terminated due to connection timeout'],
  ['database_busy', undefined, 'timeout exceeded when trying to connect'],
  ['database_slow', '57014', 'canceling statement due to statement timeout'],
  ['database_slow', undefined, 'Query read timeout'],
  ['database_refused', '53100', 'could not extend file'],
  ['database_refused', '25006', 'cannot execute INSERT in a read-only transaction'],
])('the cause in log and metrics is %s: %s "%s"', (unavailableCause, code, message) => {
  const error = failure(code, message);
  for (const thrown of [error, new QueryFailedError('INSERT', [], error)]) {
    expect(asUnavailable(thrown)).toMatchObject({ unavailableCause });
    expect(asUnavailable(thrown, true)).toMatchObject({ unavailableCause });
  }
});

test.each(['23505', '22003', '42P01', '42601', '40001', 'ERR_ASSERTION', undefined])(
  '500: %s stays as it is',
  (code) => {
    const error = failure(code);
    expect(asUnavailable(error)).toBe(error);
  },
);

test('503: a missing file that a connection needs; an error of a file that a feature opens stays as it is', () => {
  const error = Object.assign(failure('ENOENT'), { syscall: 'open', path: '/run/secrets/password' });
  expect(asUnavailable(error)).toBe(error);
  expect(asUnavailable(new ConnectionFileError(error))).toMatchObject({ unavailableCause: 'database_away' });
});

const UNKNOWN_OUTCOME = /^The database did not confirm the change in time; it may have been made\. .+ Idempotency-Key /;

test.each(['ECONNRESET', '57P01', '57P02', '08006', undefined])(
  '503: %s after a change was sent; the change may have been made',
  (code) => {
    const error = failure(code, 'Connection terminated unexpectedly');
    for (const thrown of [error, new QueryFailedError('INSERT', [], error)]) {
      expect(asUnavailable(thrown, true)).toMatchObject({ definition: UNAVAILABLE, headers: { 'Retry-After': '1' } });
      expect((asUnavailable(thrown, true) as ApiError).message).toMatch(UNKNOWN_OUTCOME);
    }
  },
);

test.each(['25006', '53100', '53300', '57014'])('503: %s after a change was sent; the change was not made', (code) => {
  for (const thrown of [failure(code), new QueryFailedError('INSERT', [], failure(code))]) {
    expect((asUnavailable(thrown, true) as ApiError).message).toBe('The database is not available. Try again.');
  }
});
