import { ApplicationConfig } from '@nestjs/core';
import { globalPipesOf } from './global-pipes.internals.js';

test('the global pipes of an application', () => {
  const application = new ApplicationConfig();
  const pipe = { transform: (value: unknown) => value };
  application.useGlobalPipes(pipe);
  expect(globalPipesOf(application)).toEqual([pipe]);
});
