import type { Type } from '@nestjs/common';
import { isDeepStrictEqual } from 'node:util';
import { Exclude, Expose, Transform, TransformationType, Type as TypeOf, type TypeOptions } from 'class-transformer';
import { defaultMetadataStorage as storage } from 'class-transformer/cjs/storage.js';
import type { Reach } from '#runtime';

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

export const CLASS_TRANSFORMERS: Reach = {
  dependency: 'class-transformer',
  touches: '`defaultMetadataStorage` of `cjs/storage.js`',
  why: 'A class with decorators of class-transformer is read by that library as a whole.',
  check() {
    const once = Transform(({ value }: { value: unknown }) => value);
    class Plain {
      @once member: unknown;
    }
    class Exposed extends Plain {
      @Expose({ name: 'sent' }) other: unknown;
    }
    class Excluded extends Plain {
      @Exclude() other: unknown;
    }
    @Exclude()
    class Hidden extends Plain {}
    class Typed {
      @once @TypeOf(() => Date) member: unknown;
    }
    class Twice {
      @once @once member: unknown;
    }
    if (hasTransformersBeside(Plain, ['member'])) return 'a class with one @Transform() seems to have other decorators';
    class Chosen {
      @TypeOf(() => Plain, { discriminator: { property: 'kind', subTypes: [{ value: Exposed, name: 'exposed' }] } })
      member: unknown;
    }
    const classes = [Typed, Chosen, Plain, Exposed].map((each) =>
      classesOf(each, each === Exposed ? 'other' : 'member'),
    );
    if (!isDeepStrictEqual(classes, [[Date], [Exposed], [], undefined])) return 'the classes of @Type() are not found';
    const missed = [Exposed, Excluded, Hidden, Typed, Twice].find((each) => !hasTransformersBeside(each, ['member']));
    if (missed !== undefined) return `the decorator of a class '${missed.name}' is not found`;
    const names = [sentNameOf(Exposed, 'other'), sentNameOf(Exposed, 'member')].join();
    if (names !== 'sent,member') return `the names sent,member of @Expose come back as ${names}`;
    const chosen = subTypesOf(Chosen, 'member').map(({ name, value }) => value === Exposed && name);
    return chosen.join() === 'exposed' ? undefined : `the class of a discriminator comes back as ${chosen.join()}`;
  },
};
