import { SetMetadata } from '@nestjs/common';

export const PUBLIC_METADATA = 'petstore:public';

/** Opens a handler, or all handlers of a controller, to requests without an API key. All other handlers need a key. */
export const Public = (): ClassDecorator & MethodDecorator => SetMetadata(PUBLIC_METADATA, true);
