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

/** The name of the member that clients send for a property: that of `@Expose({ name })`, else the property's own. */
export function sentNameOf(type: unknown, property: string): string {
  const exposed = storage.findExposeMetadata(type as Type, property) as { options: { name?: string } } | undefined;
  return exposed?.options.name ?? property;
}
