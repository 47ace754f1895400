import type { Type } from '@nestjs/common';
import { TransformationType, type TypeOptions } from 'class-transformer';
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

/**
 * The classes of which a property gets instances by `@Type()`; empty if only a request tells, as with `@Transform()`. Undefined for
 * a property that gets no instances.
 */
export function classesOf(type: Type, property: string): readonly Type[] | undefined {
  const typed = storage.findTypeMetadata(type, property) as ReturnType<typeof storage.findTypeMetadata> | undefined;
  if (typed === undefined) {
    return storage.findTransformMetadatas(type, property, TransformationType.PLAIN_TO_CLASS).length > 0
      ? []
      : undefined;
  }
  const { discriminator } = typed.options;
  if (discriminator !== undefined) return discriminator.subTypes.map(({ value }) => value as Type);
  try {
    return [typed.typeFunction() as Type];
  } catch {
    // It reads the object that it is asked for.
    return [];
  }
}

/** A class that a discriminator chooses, and the discriminator's value. */
export interface SubType {
  readonly name: string;
  readonly value: unknown;
}

/** The classes from which the discriminator of `@Type()` chooses for a property; none if the instances keep the discriminator. */
export function subTypesOf(type: unknown, property: string): readonly SubType[] {
  const found = storage.findTypeMetadata(type as Type, property) as { options?: TypeOptions } | undefined;
  return (found?.options?.keepDiscriminatorProperty ? undefined : found?.options?.discriminator?.subTypes) ?? [];
}
