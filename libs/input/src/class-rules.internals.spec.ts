import { ValidateBy, ValidateNested } from 'class-validator';
import { rulesOf } from './class-rules.internals.js';

const rule = (context: number): PropertyDecorator =>
  ValidateBy({ name: 'trial', validator: { validate: () => true } }, { context });

class Ancestor {
  @rule(1) first: unknown;
  @rule(2) second: unknown;
}
class Trial extends Ancestor {
  @rule(3) third: unknown;
  @rule(4) declare second: unknown;
}
class Nesting {
  @ValidateNested() member: unknown;
}

test('the rules of a class are those of its ancestors first, each in its order', () => {
  const read = rulesOf(Trial).map(({ name, propertyName, context }) => `${name} ${propertyName} ${String(context)}`);
  expect(read).toEqual(['trial first 1', 'trial third 3', 'trial second 4']);
  expect(rulesOf(Nesting)).toMatchObject([{ propertyName: 'member', type: 'nestedValidation' }]);
});
