import { applyDecorators, Header, SetMetadata } from '@nestjs/common';

export const STABILITY_METADATA = 'petstore:stability';

/** The stability of an operation. Operations without `@Stability` are stable. */
export type StabilityLevel = 'experimental' | 'beta';

/**
 * Marks an operation whose contract may still change: `x-stability` and `x-stability-level` in the document, and the
 * header field `Petstore-Stability` on every answer after the guards, errors included.
 */
export function Stability(level: StabilityLevel): MethodDecorator {
  return applyDecorators(SetMetadata(STABILITY_METADATA, level), Header('Petstore-Stability', level));
}
