import { SetMetadata } from '@nestjs/common';
import type { ErrorDefinition } from '../errors/error-catalogue.js';

export const FAILURES_METADATA = 'petstore:failures';

/**
 * Documents the errors that a handler itself can answer with. What the platform answers (no key, no scope, a wrong body,
 * the service's own failures …) every operation has in the document without a word.
 */
export function FailsWith(...errors: [ErrorDefinition, ...ErrorDefinition[]]): MethodDecorator {
  return SetMetadata(FAILURES_METADATA, errors);
}
