import { SetMetadata } from '@nestjs/common';

/**
 * Key of the metadata that `@Public()` sets to true, and `@RequireScopes` to false. For guards of your own:
 * `reflector.getAllAndOverride(PUBLIC_METADATA, [context.getHandler(), context.getClass()])`.
 */
export const PUBLIC_METADATA = 'platform:public';

/**
 * Opens a handler, or all handlers of a controller, to requests without an API key. On a handler it overrides
 * `@RequireScopes` of the controller.
 */
export const Public = (): ClassDecorator & MethodDecorator => SetMetadata(PUBLIC_METADATA, true);
