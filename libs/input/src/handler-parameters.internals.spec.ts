import { Body, createParamDecorator, ParseIntPipe, Query, UsePipes, ValidationPipe } from '@nestjs/common';
import { type Handler, parametersOf } from './handler-parameters.internals.js';

const own = createParamDecorator(() => undefined);
const [first, second] = [new ValidationPipe(), new ParseIntPipe()];
class Input {}
@UsePipes(first)
class Trial {
  handle(@Body() _body: Input, @Query('limit', second) _limit: number, @own() _own: string): void {}
}

test('the parameters of a handler: source, data, class and pipes', () => {
  const { handle } = Trial.prototype as unknown as Record<'handle', Handler>;
  const read = parametersOf(Trial, handle);
  expect(read).toHaveLength(3);
  expect(read).toEqual(
    expect.arrayContaining([
      { source: 'BODY', data: undefined, metatype: Input, pipes: [first], hasOwnPipe: false },
      { source: 'QUERY', data: 'limit', metatype: Number, pipes: [first, second], hasOwnPipe: true },
      { source: undefined, data: undefined, metatype: String, pipes: [first], hasOwnPipe: false },
    ]),
  );
});
