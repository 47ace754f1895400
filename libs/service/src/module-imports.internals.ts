import { type DynamicModule, Module, type Type } from '@nestjs/common';
import { MODULE_METADATA } from '@nestjs/common/constants.js';
import type { Reach } from '#runtime';

/** What `@Module` of a class imports. */
export function importsOf(module: Type): readonly (Type | DynamicModule)[] {
  return (Reflect.getMetadata(MODULE_METADATA.IMPORTS, module) ?? []) as (Type | DynamicModule)[];
}

export const MODULE_IMPORTS: Reach = {
  dependency: '@nestjs/common',
  touches: 'metadata of `@Module`',
  why: "A service's definition is what its module gives `PlatformModule.forRoot`.",
  check() {
    class Imported {}
    @Module({ imports: [Imported] })
    class Trial {}
    return importsOf(Trial)[0] === Imported ? undefined : 'the imports of a module are not found';
  },
};
