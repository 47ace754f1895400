import { applyDecorators, SetMetadata } from '@nestjs/common';

/**
 * Key of the metadata that `@Public()` sets to true, and `@RequireScopes` to false. For guards of your own:
 * `reflector.getAllAndOverride(PUBLIC_METADATA, [context.getHandler(), context.getClass()])`.
 */
export const PUBLIC_METADATA = 'platform:public';
export const OPEN_TO_METADATA = 'platform:open-to';
export const REQUIRED_SCOPES_METADATA = 'platform:scopes';

/**
 * Admits requests without an API key. On a handler it overrides `@RequireScopes` of the controller.
 *
 * @example `@Get('opening-hours') @Public() getOpeningHours(): OpeningHours`
 */
export const Public = (): ClassDecorator & MethodDecorator => SetMetadata(PUBLIC_METADATA, true);

/** Whether a text has the form of a scope: `thing:action` in lower-case letters, such as `orders:read`. */
export function isScope(text: string): boolean {
  return /^[a-z][a-z0-9-]{0,62}:[a-z][a-z0-9-]{0,62}$/.test(text);
}

/**
 * Also admits requests whose bearer token is the value of a setting. They have no client: they are not limited, not counted
 * as usage, and query no database. Without the setting, only the API keys of `@RequireScopes` are admitted.
 *
 * @param setting the member of the configuration that has the token
 * @example `@Get() @RequireScopes('metrics:read') @OpenTo('metricsToken') readMetrics(): Promise<string>`
 */
export const OpenTo = (setting: string): MethodDecorator => SetMetadata(OPEN_TO_METADATA, setting);

/**
 * Admits only API keys that have all of these scopes to a handler, or to all handlers of a controller. Other keys get
 * 403 with the challenge of RFC 6750, section 3.1. The document names the scopes. A module chooses its own scopes, of
 * the form `thing:action`; keys are created with them. `@RequireScopes()` admits any valid key.
 *
 * The decorator of a handler overrides that of its controller. A handler without it and `@Public()` stops the start.
 *
 * @example `@Get() @RequireScopes('visits:read') listVisits(): Promise<Visit[]>`
 * @throws Error at start when a scope does not have this form
 */
export function RequireScopes(...scopes: string[]): ClassDecorator & MethodDecorator {
  for (const scope of scopes) {
    if (!isScope(scope)) {
      throw new Error(`'${scope}' is no scope: a scope has the form thing:action, in lower-case letters.`);
    }
  }
  return applyDecorators(SetMetadata(PUBLIC_METADATA, false), SetMetadata(REQUIRED_SCOPES_METADATA, scopes));
}
