const NAME = /^[a-z][a-z0-9-]{0,39}$/;

/** The metadata key of a check's name, on its method. */
export const READINESS_CHECK_METADATA = 'petstore:readiness-check';

/**
 * Makes a method of a provider a readiness check: `/health/ready` answers 503 when the method throws or does not settle
 * within READINESS_TIMEOUT_MS. Its parameter is an `AbortSignal` that aborts at that time. While `/health/ready` is
 * requested, the method is called about once a second, and never while an earlier call runs.
 *
 * Check only what every request needs and what may fail on this instance alone. If all instances fail a check at once, none
 * of them gets requests.
 *
 * @param name the name in the answer, which is public, and in the log: up to 40 of a-z, 0-9 and `-`
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
