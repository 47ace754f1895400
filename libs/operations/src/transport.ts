import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Reach } from '#runtime';

/** A package by whose decorators handlers get requests that are not of HTTP. An application may not have it. */
export interface Transport extends Reach {
  /** The kinds of its handlers, by the metadata key of its decorators: those of classes, and those of methods. */
  readonly classes: Readonly<Record<string, string>>;
  readonly methods: Readonly<Record<string, string>>;
  /** @param places the files from which the package is looked for */
  check(places?: readonly string[]): Promise<string | undefined>;
}

type Decorators<Name extends string> = Record<Name, (argument?: string) => ClassDecorator & MethodDecorator>;

/**
 * Describes a transport. Its check decorates a class and methods by every copy of the package that the application may use. An
 * application that uses the package has imported it before, and one without it imports nothing: for both the check costs less than
 * a ms.
 *
 * @param name of the package
 * @param version for which the keys were read
 * @param decorators documented ones: each says whether it decorates a class or a method
 */
export function transport<Name extends string>(
  name: string,
  version: string,
  decorators: Readonly<Record<Name, 'classes' | 'methods'>>,
  keys: Pick<Transport, 'classes' | 'methods'>,
): Transport {
  /** The decorators that a copy of the package lacks, or whose trace is not one of the known keys. */
  async function unknownOf(file: string): Promise<string[]> {
    const copy = (await import(pathToFileURL(file).href)) as Partial<Decorators<Name>>;
    return (Object.entries(decorators) as [Name, 'classes' | 'methods'][]).flatMap(([decorator, kind]) => {
      class Trial {
        handle(): void {}
      }
      const { prototype } = Trial;
      const handler = Object.getOwnPropertyDescriptor(prototype, 'handle') as TypedPropertyDescriptor<() => void>;
      const decorate = copy[decorator]?.('trial');
      if (kind === 'classes') decorate?.(Trial);
      else decorate?.(prototype, 'handle', handler);
      const target = kind === 'classes' ? Trial : (handler.value as object);
      return Object.keys(keys[kind]).some((key) => Reflect.hasMetadata(key, target)) ? [] : `@${decorator}`;
    });
  }
  return {
    ...keys,
    dependency: name,
    touches: `metadata of ${Object.keys(decorators)
      .map((each) => `\`@${each}\``)
      .join(', ')}`,
    why: 'A handler of other requests than those of HTTP, to which no API key is checked, is refused unless it is `@Public()`.',
    async check(places = placesOfApplication()) {
      const unknown = new Set<string>();
      for (const file of copiesOf(name, places)) for (const each of await unknownOf(file)) unknown.add(each);
      if (unknown.size === 0) return undefined;
      const handlers = `a handler with ${[...unknown].join(' or ')}`;
      return `${handlers} would not be noticed, and could be open to everybody; version ${version} of the package is known`;
    },
  };
}

/** This package, Nest's core, the program and the working directory: each may have a copy of its own. */
function placesOfApplication(): string[] {
  const here = import.meta.url;
  return [here, createRequire(here).resolve('@nestjs/core'), process.argv[1] ?? '.', join(process.cwd(), '_')];
}

function copiesOf(name: string, places: readonly string[]): Set<string> {
  const files = places.flatMap((place) => {
    try {
      return createRequire(place).resolve(name);
    } catch {
      return [];
    }
  });
  return new Set(files);
}
