import type { DynamicModule, Type } from '@nestjs/common';
import { MODULE_METADATA } from '@nestjs/common/constants.js';

/** What `@Module` of a class imports. */
export function importsOf(module: Type): readonly (Type | DynamicModule)[] {
  return (Reflect.getMetadata(MODULE_METADATA.IMPORTS, module) ?? []) as (Type | DynamicModule)[];
}
