import { Module } from '@nestjs/common';
import { importsOf } from './module-imports.internals.js';

class Imported {}
@Module({ imports: [Imported] })
class Trial {}

test('the imports of a module', () => {
  expect([importsOf(Trial), importsOf(Imported)]).toEqual([[Imported], []]);
});
