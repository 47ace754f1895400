import { SetMetadata } from '@nestjs/common';
import { isScope } from '../api-keys/scopes.js';

export const REQUIRED_SCOPES_METADATA = 'petstore:scopes';

/**
 * Lets only API keys call a handler, or the handlers of a controller, that have every one of these scopes; others get
 * 403 with the challenge of RFC 6750, section 3.1. The document names the scopes too. A module invents its own scopes:
 * any name of the form `thing:action` that a key was made with.
 *
 * @throws Error at start when a scope is not of that form
 */
export function RequireScopes(...scopes: [string, ...string[]]): ClassDecorator & MethodDecorator {
  for (const scope of scopes) {
    if (!isScope(scope)) {
      throw new Error(`'${scope}' is no scope: a scope has the form thing:action, in lower-case letters.`);
    }
  }
  return SetMetadata(REQUIRED_SCOPES_METADATA, scopes);
}
