import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { failureText } from './failure-text.js';

@Injectable()
class Shelf {}

@Injectable()
class Library {
  constructor(readonly shelf: Shelf) {}
}

@Module({ providers: [Shelf, Library] })
class LibraryModule {}

test('a constructor whose types the compiler has left out: the text names the compilers, which Nest does not', async () => {
  Reflect.defineMetadata('design:paramtypes', [undefined], Library);
  const failure = await NestFactory.createApplicationContext(LibraryModule, {
    abortOnError: false,
    logger: false,
  }).catch((error: unknown) => failureText(error, 'library'));
  expect(failure).toMatch(
    /can't resolve dependencies of the Library[^]*\nlibrary: Or the compiler has left out the types/,
  );
});
