const NAME = /^[a-z][a-z0-9-]{0,39}$/;

/** Where the name of a check stands, at its method. */
export const READINESS_CHECK_METADATA = 'petstore:readiness-check';

/**
 * At a method of a provider: this process is ready only while the method succeeds, so `/health/ready` answers 503 when it
 * throws, and when it does not answer within READINESS_TIMEOUT_MS. Its parameter is an `AbortSignal` of that moment. It is
 * called about once a second while somebody asks, and never while an earlier call runs.
 *
 * Check only what every request needs and what another instance may have: the others would fail too, and nobody serves.
 *
 * @param name shown in the answer, which is public, and in the log: up to 40 of a-z, 0-9 and `-`
 */
export function ReadinessCheck(name: string): ReadinessDecorator {
  if (!NAME.test(name)) throw new Error(`'${name}' is no name of a readiness check: ${NAME.source}`);
  return (_prototype, _key, { value }) => {
    Reflect.defineMetadata(READINESS_CHECK_METADATA, name, value as object);
  };
}

type ReadinessDecorator = <Method extends (signal: AbortSignal) => unknown>(
  prototype: object,
  key: string | symbol,
  method: TypedPropertyDescriptor<Method>,
) => void;
