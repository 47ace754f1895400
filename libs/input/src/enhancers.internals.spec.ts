import { UseGuards, UseInterceptors } from '@nestjs/common';
import { ApplicationConfig } from '@nestjs/core';
import { enhancersOf, globalPipesOf } from './enhancers.internals.js';

test('the global pipes of an application', () => {
  const application = new ApplicationConfig();
  const pipe = { transform: (value: unknown) => value };
  application.useGlobalPipes(pipe);
  expect(globalPipesOf(application)).toEqual([pipe]);
});

test('the guards and interceptors before a handler: global ones, those of its controller, its own', () => {
  const [first, second] = [{ canActivate: () => true }, { canActivate: () => true }];
  class OwnGuard {
    canActivate = () => true;
  }
  const interceptor = { intercept: () => undefined as never };
  @UseGuards(second)
  class Things {
    @UseGuards(OwnGuard)
    @UseInterceptors(interceptor)
    list(): void {}
  }
  class OfRequest {}
  const application = new ApplicationConfig();
  application.useGlobalGuards(first);
  application.addGlobalRequestGuard({ metatype: OfRequest } as never);
  // eslint-disable-next-line @typescript-eslint/unbound-method -- it is only looked at
  expect(enhancersOf(application, Things, Things.prototype.list)).toEqual({
    guards: [first, OfRequest, second, OwnGuard],
    interceptors: [interceptor],
  });
});
