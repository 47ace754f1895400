import { Logger } from '@nestjs/common';
import express, { type Express } from 'express';
import { jest } from '@jest/globals';
import { canReadRoutes } from './express-routes.js';

test('the routes of the installed Express can be read, and one log line says so if they cannot', () => {
  const warn = jest.spyOn(Logger.prototype, 'warn').mockReturnValue(undefined);
  expect(canReadRoutes()).toBe(true);
  expect(warn).not.toHaveBeenCalled();
  const withoutStack = Object.assign(express(), { get: () => undefined }) as unknown as Express;
  expect(canReadRoutes(() => withoutStack)).toBe(false);
  expect(canReadRoutes(() => ({}) as Express)).toBe(false);
  expect(warn).toHaveBeenCalledTimes(2);
  warn.mockRestore();
});
