import type { Type } from '@nestjs/common';
import { TransformationType } from 'class-transformer';
import { defaultMetadataStorage as storage } from 'class-transformer/cjs/storage.js';

/**
 * Whether a class has decorators of class-transformer besides the one `@Transform()` that each of these properties has. Only
 * the library's private storage tells; without it, a decorator such as `@Transform()` would silently not act.
 */
export function hasTransformersBeside(type: Type, properties: readonly string[]): boolean {
  return (
    storage.getStrategy(type) !== 'none' ||
    storage.getExposedMetadatas(type).length > 0 ||
    storage.getExcludedMetadatas(type).length > 0 ||
    properties.some(
      (name) =>
        (storage.findTypeMetadata(type, name) as unknown) !== undefined ||
        storage.findTransformMetadatas(type, name, TransformationType.PLAIN_TO_CLASS).length > 1,
    )
  );
}
