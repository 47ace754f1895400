import { SetMetadata } from '@nestjs/common';
import type { ErrorDefinition } from '../../errors/error-catalogue.js';

export const FAILURES_METADATA = 'petstore:failures';

/**
 * Documents the errors that the handler itself throws. The platform's errors (authentication, scopes, body, rate limit,
 * 500, 503 …) are documented automatically.
 */
export function FailsWith(...errors: [ErrorDefinition, ...ErrorDefinition[]]): MethodDecorator {
  return SetMetadata(FAILURES_METADATA, errors);
}
