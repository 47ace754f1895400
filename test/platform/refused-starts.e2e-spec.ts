import {
  Body,
  Controller,
  Get,
  type ModuleMetadata,
  Post,
  Query,
  SetMetadata,
  type Type as Class,
  UsePipes,
  ValidationPipe,
} from '@nestjs/common';
import { APP_PIPE } from '@nestjs/core';
import { MessagePattern } from '@nestjs/microservices';
import { ApiCookieAuth } from '@nestjs/swagger';
import { SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import { Transform, Type } from 'class-transformer';
import { ValidateNested } from 'class-validator';
import { TextProperty } from '#input';
import { Public, RequireScopes } from '#operations';
import { StartupError } from '#runtime';
import { createTestApp, type TestAppOptions } from '../support/app.js';

/* Modules that would be open to everybody, ignored, or never reached: the start fails with a sentence. */

/** An application with one more module. */
const added = (parts: ModuleMetadata): TestAppOptions => ({ features: [{ module: class TestModule {}, ...parts }] });

/** A class with one method, which is marked as one of another transport than HTTP. */
function marked(name: string, method: string, mark: MethodDecorator, ...ofClass: ClassDecorator[]): Class {
  const type = { [name]: class {} }[name] as Class;
  const descriptor = { value: () => undefined, configurable: true };
  Object.defineProperty(type.prototype, method, descriptor);
  mark(type.prototype as object, method, descriptor);
  for (const decorate of ofClass) decorate(type);
  return type;
}

// Marked as by @nestjs/graphql, which is not installed here.
const ClosedResolver = marked('ClosedResolver', 'pets', SetMetadata('graphql:resolver_type', 'Query'));
const MADE_RESOLVER = { provide: 'resolver', useFactory: () => new ClosedResolver() as object };
const ClosedFields = marked('ClosedFields', 'name', SetMetadata('graphql:resolve_property', true));
const ClosedReferences = marked('ClosedReferences', 'find', SetMetadata('graphql:resolve_reference', true));
const ClosedMessages = marked('ClosedMessages', 'closed', MessagePattern('closed'), Controller());
const ClosedGateway = marked('ClosedGateway', 'never', () => undefined, WebSocketGateway());
const ScopedGateway = marked('ScopedGateway', 'scoped', SubscribeMessage('scoped'), WebSocketGateway(), Public());
RequireScopes('news:read')(ScopedGateway.prototype.scoped as Class);

@Controller('test-undecided')
class TestUndecidedController {
  @Get()
  findOne(): void {}

  @Get('two')
  @RequireScopes()
  findTwo(): void {}

  @Get('three')
  @Public()
  @RequireScopes()
  findThree(): void {}
}

@Controller('test-secured')
@RequireScopes()
class TestSecuredController {
  @Get()
  @ApiCookieAuth('session')
  readSession(): void {}
}

class Piped {
  @TextProperty({ description: 'A name.', minLength: 1, maxLength: 9 }) name: string;
}

@Public()
@Controller('test-piped')
class TestPipedController {
  @Post()
  @UsePipes(new ValidationPipe({ exceptionFactory: String, transform: true }))
  add(@Body() _piped: Piped): void {}

  @Get()
  list(@Query(new ValidationPipe({ stopAtFirstError: true })) _piped: Piped): void {}

  @Get('usual')
  @UsePipes(new ValidationPipe({ transform: true, whitelist: true }))
  findUsual(@Query() _piped: Piped): void {}
}

class Line {
  @ValidateNested() @Type(() => Object) unit: Piped;
  @ValidateNested() @Type(() => Piped) other: Piped;
}

class TestNestedOrder {
  @ValidateNested({ each: true }) @Type(() => Line) lines: Line[];
  @ValidateNested({ each: true }) units: Piped[];
  @ValidateNested() @Transform(({ value }) => Object.assign(new Piped(), value) as Piped) made: Piped;
}

@Public()
@Controller('test-nested')
class TestNestedController {
  @Post()
  add(@Body() _order: TestNestedOrder): void {}
}

const globalPipe = (options: object): ValidationPipe => new ValidationPipe({ transform: true, ...options });

const CONVERTING = { transformOptions: { enableImplicitConversion: true } };

const unprotected = (what: string): string =>
  `nothing would protect ${what}. Add @Public(), and check the key in the handler: await apiKeys.verify(token)`;

const STARTS: [name: string, options: TestAppOptions, sentence: string | RegExp][] = [
  ['a method with scopes', added({ providers: [ScopedGateway] }), unprotected('ScopedGateway.scoped')],
  ['a gateway', added({ providers: [ClosedGateway] }), unprotected('ClosedGateway')],
  ['a query', added({ providers: [ClosedResolver] }), unprotected('ClosedResolver.pets')],
  ['a field of GraphQL', added({ providers: [ClosedFields] }), unprotected('ClosedFields.name')],
  ['a reference of GraphQL', added({ providers: [ClosedReferences] }), unprotected('ClosedReferences.find')],
  ['a handler of messages', added({ controllers: [ClosedMessages] }), unprotected('ClosedMessages.closed')],
  ['a resolver that a factory makes', added({ providers: [MADE_RESOLVER] }), 'protect ClosedResolver.pets.'],
  [
    'every handler that says nothing of its callers, or two things',
    added({ controllers: [TestUndecidedController] }),
    'Nothing says who may call TestUndecidedController.findOne, TestUndecidedController.findThree. Add either ' +
      "@RequireScopes('thing:action'), @RequireScopes() for any API key, or @Public().",
  ],
  [
    'an operation with a security scheme that is not declared',
    added({ controllers: [TestSecuredController] }),
    "TestSecuredController.readSession names the security scheme 'session', which is not declared. Remove the decorator for " +
      'API keys; else declare the scheme in securitySchemes: of an Authenticator, or of defineService for a guard of a module.',
  ],
  [
    'a global pipe that would refuse undeclared members',
    { setUp: (nest) => void nest.useGlobalPipes(globalPipe({ whitelist: true, forbidNonWhitelisted: true })) },
    /: forbidNonWhitelisted of a global ValidationPipe\. Remove/,
  ],
  [
    'a global pipe that would convert values',
    added({ providers: [{ provide: APP_PIPE, useValue: globalPipe(CONVERTING) }] }),
    /: enableImplicitConversion of a global ValidationPipe\. Remove/,
  ],
  [
    'pipes of handlers and parameters with options that are not read',
    added({ controllers: [TestPipedController] }),
    /: exceptionFactory of the ValidationPipe of TestPipedController\.add, stopAtFirstError of .*\.list\. Remove/,
  ],
  [
    'nested members without a class',
    added({ controllers: [TestNestedController] }),
    /^@ValidateNested\(\) needs @Type\(\(\) => TheClass\) beside it, .*: TestNestedOrder\.units, Line\.unit\.$/,
  ],
];

test.each(STARTS)('the start fails for %s', async (_, options, sentence) => {
  const starting = createTestApp(options);
  await expect(starting).rejects.toThrow(sentence);
  await expect(starting).rejects.toMatchObject({ name: StartupError.name });
});
