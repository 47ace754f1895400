import { ApiConsumes } from '@nestjs/swagger';
import { Body, Get, Headers, Param, ParseIntPipe, Query, Req, UsePipes } from '@nestjs/common';
import { ApplicationConfig, type DiscoveryService } from '@nestjs/core';
import { InputCheck } from './input-check.js';
import { InputPipe } from './input.pipe.js';
import { Int64Property, TextProperty } from './property.decorators.js';

class Thing {
  @TextProperty({ description: 'A text.', minLength: 1, maxLength: 40 })
  name: string;
}

class Counted {
  @Int64Property({ description: 'A number.' })
  count: bigint;
}

const FORM = ApiConsumes('application/x-www-form-urlencoded', 'multipart/form-data');

/** Checks a handler with one parameter of a declared type, as the start does. */
function check(decorator: ParameterDecorator, metatype: unknown, ...more: MethodDecorator[]): void {
  class Things {
    add(input: unknown): unknown {
      return input;
    }
  }
  const { prototype } = Things;
  Reflect.defineMetadata('design:paramtypes', [metatype], prototype, 'add');
  decorator(prototype, 'add', 0);
  for (const decorate of [Get(), ...more]) {
    decorate(prototype, 'add', Reflect.getOwnPropertyDescriptor(prototype, 'add') as PropertyDescriptor);
  }
  const discovery = { getControllers: () => [{ metatype: Things }] } as unknown as DiscoveryService;
  new InputCheck(discovery, new ApplicationConfig()).onModuleInit();
}

test.each<[string, ParameterDecorator, unknown, ...MethodDecorator[]]>([
  ['a class of a body', Body(), Thing],
  ['a class of a member', Body('thing'), Thing],
  ['a number in a form or JSON', Body(), Counted, ApiConsumes('application/json', 'multipart/form-data')],
  ['a member as unknown', Body('thing'), Object],
  ['a member with a pipe', Body('count', ParseIntPipe), Number],
  ['unknown', Body(), Object],
  ['no type', Body(), undefined],
  ['a class of a query', Query(), Thing],
  ['a string of a query', Query('q'), String],
  ['a string of a path', Param('id'), String],
  ['a class of a path', Param(), Thing],
  ['all header fields as unknown', Headers(), Object],
  ['a parameter with a pipe', Param('id', ParseIntPipe), Number],
  ['a handler with a pipe', Body(), Array, UsePipes(InputPipe)],
  ['the request', Req(), Thing],
])('accepts %s', (_, decorator, metatype, ...more) => {
  expect(() => check(decorator, metatype, ...more)).not.toThrow();
});

test.each<[string, ParameterDecorator, unknown, ...MethodDecorator[]]>([
  ['@Body() of Things.add is declared as Array, which nothing would check.', Body(), Array],
  ['@Body() of Things.add is declared as String, which nothing would check.', Body(), String],
  ["@Body('text') of Things.add is declared as String, which nothing would check.", Body('text'), String],
  ["@Query('filter') of Things.add is declared as Thing, which nothing would check.", Query('filter'), Thing],
  ["@Query('limit') of Things.add is declared as Number, which nothing would check.", Query('limit'), Number],
  ["@Param('id') of Things.add is declared as Number, which nothing would check.", Param('id'), Number],
  ["@Headers('age') of Things.add is declared as Number, which nothing would check.", Headers('age'), Number],
  ['@Body() of Things.add gets strings alone, so count of Counted could never be valid.', Body(), Counted, FORM],
  ['@Query() of Things.add gets strings alone, so count of Counted could never be valid.', Query(), Counted],
  // Nest calls no pipe for header fields.
  ['@Headers() of Things.add is declared as Thing, which nothing would check.', Headers(), Thing, UsePipes(InputPipe)],
])('refuses: %s', (message, decorator, metatype, ...more) => {
  expect(() => check(decorator, metatype, ...more)).toThrow(message);
});
