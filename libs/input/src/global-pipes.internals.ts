import type { PipeTransform } from '@nestjs/common';
import { ApplicationConfig } from '@nestjs/core';
import type { Reach } from '#runtime';

export { ApplicationConfig };

/** The pipes of `app.useGlobalPipes` and of APP_PIPE, without those of a request. */
export function globalPipesOf(application: ApplicationConfig): readonly PipeTransform[] {
  return application.getGlobalPipes();
}

export const GLOBAL_PIPES: Reach = {
  dependency: '@nestjs/core',
  touches: '`ApplicationConfig`',
  why: 'An option of a global ValidationPipe that has no effect stops the start.',
  check() {
    const application = new ApplicationConfig();
    const pipe = { transform: (value: unknown) => value };
    application.useGlobalPipes(pipe);
    return globalPipesOf(application).includes(pipe) ? undefined : 'a global pipe is not found';
  },
};
