import { Command, type ErrorOptions, type ParseOptionsResult } from 'commander';
import { nearestName } from '#settings';
import { sentence } from './terminal.js';

/** A command of Commander whose errors are one line: what is wrong, what was probably meant, and how to get its help. */
export class ServiceCommand extends Command {
  override createCommand(name?: string): ServiceCommand {
    return new ServiceCommand(name);
  }

  /** Refuses an unknown option. Commander would complain of a missing one first, which the unknown one was meant to be. */
  override parseOptions(words: string[]): ParseOptionsResult {
    const result = super.parseOptions(words);
    const [unknown] = result.unknown;
    const isHelp = result.unknown.some((word) => word === '-h' || word === '--help');
    if (unknown === undefined || isHelp || this.commands.length > 0) return result;
    const known = this.options.map(({ long, flags }) => long ?? flags);
    const flag = unknown.split('=')[0] as string;
    if (known.includes(flag)) return this.error(`error: option '${flag}' takes no value`);
    const nearest = nearestName(flag, known);
    const remedy =
      nearest === undefined ? (known.length > 0 ? `Its options: ${known.join(', ')}.` : '') : asked(nearest);
    return this.error(`error: unknown option '${flag}'\n(${remedy})`);
  }

  override error(message: string, options?: ErrorOptions): never {
    const [fault = '', advice = this.advice(options?.code)] = message.split(/\n\((.*)\)$/s);
    return super.error(`${[sentence(fault), advice].filter(Boolean).join(' ')} See '${pathOf(this)} --help'.`, options);
  }

  /** What was probably meant by words that are too many: `migrate status` is `migrate:status`. */
  private advice(code: string | undefined): string {
    const joined = `${this.name()}:${this.args[0]}`;
    const isMeant =
      code === 'commander.excessArguments' && this.parent?.commands.some((each) => each.name() === joined);
    return isMeant ? asked(joined) : '';
  }
}

/** The words that run a command. */
function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`;
}

function asked(name: string): string {
  return `Did you mean ${name}?`;
}
