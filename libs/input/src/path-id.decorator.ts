import { Param } from '@nestjs/common';
import { ApiParam } from '@nestjs/swagger';
import { ApiError, type ErrorDefinition } from '#errors';
import { parseInt64 } from '#json';
import type { Described } from './input-class.js';

/**
 * A parameter of a handler: an id in the path, a decimal int64 without plus sign and leading zeros. The handler gets an
 * exact bigint. No resource has another id, so any other text gets the error of an unknown id.
 *
 * @example getOrder(@PathId('orderId', ORDER_NOT_FOUND, { description: 'Its identifier.', example: 1 }) id: bigint)
 * @param name its name in the route
 * @param notFound the error of an unknown id; name it in `@FailsWith` too
 */
export function PathId(
  name: string,
  notFound: ErrorDefinition,
  { description, example }: Pick<Described, 'description' | 'example'>,
): ParameterDecorator {
  const transform = (text: string): bigint => {
    const id = parseInt64(text);
    if (id === undefined) throw new ApiError(notFound);
    return id;
  };
  return (prototype, key, index) => {
    Param(name, { transform })(prototype, key, index);
    const handler = Object.getOwnPropertyDescriptor(prototype, key as string) as PropertyDescriptor;
    ApiParam({ name, description, schema: { type: 'integer', format: 'int64', example } })(
      prototype,
      key as string,
      handler,
    );
  };
}
