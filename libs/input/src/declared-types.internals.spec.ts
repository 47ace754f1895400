import { ApiConsumes } from '@nestjs/swagger';
import { declaredTypesOf } from './declared-types.internals.js';

@ApiConsumes('text/trial')
class Trial {
  @ApiConsumes('text/first', 'text/second') handle(): void {}
}

test('the media types of a controller and its handler', () => {
  const { handle } = Trial.prototype as unknown as Record<'handle', object>;
  expect(declaredTypesOf(Trial, handle)).toEqual(['text/trial', 'text/first', 'text/second']);
});
