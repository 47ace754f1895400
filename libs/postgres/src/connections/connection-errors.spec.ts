import { QueryFailedError } from 'typeorm';
import { type ApiError, UNAVAILABLE } from '#errors';
import { asUnavailable } from './connection-errors.js';

const failure = (code: string | undefined, message = 'message'): Error => Object.assign(new Error(message), { code });
const away = (code: string) => ['database_away', code, 'the message'] as const;

test.each([
  ...['ECONNREFUSED', 'ECONNRESET', 'ETIMEDOUT', 'ENOTFOUND', 'EPIPE', 'EHOSTDOWN', 'ECONNABORTED'].map(away),
  ...['ERR_SSL_SSLV3_ALERT_CLOSE_NOTIFY', '08006', '25P04', '28P01', '3D000', '57P01', '57P02', '57P03'].map(away),
  ['database_away', undefined, 'Connection terminated unexpectedly'],
  ['database_away', undefined, 'Connection terminated due to connection timeout'],
  ['database_away', undefined, 'Client has encountered a connection error and is not queryable'],
  ['database_slow', undefined, 'Query read timeout'],
  ['database_refused', '53100', 'could not extend file'],
  ['database_refused', '53300', 'too many connections'],
  ['database_refused', '58030', 'could not read file'],
  ['database_refused', '25006', 'cannot execute INSERT in a read-only transaction'],
] as const)('503, in log and metrics with the cause %s: %s "%s"', (unavailableCause, code, message) => {
  const error = failure(code, message);
  for (const thrown of [error, new QueryFailedError('INSERT', [], error)]) {
    const answer = asUnavailable(thrown) as ApiError;
    expect(answer).toMatchObject({ definition: UNAVAILABLE, unavailableCause });
    expect([answer.cause, answer.message.includes(message)]).toEqual([thrown, false]);
    expect(asUnavailable(thrown, true)).toMatchObject({ unavailableCause });
  }
});

test.each(['23505', '22003', '42P01', '42601', '40001', '57014', 'ERR_ASSERTION', undefined])(
  '500: %s stays as it is',
  (code) => {
    const error = failure(code);
    expect(asUnavailable(error)).toBe(error);
  },
);
