/* The program of a service. Nothing here loads a framework before it is needed: the help of the commands imports this door. */

export { createProgram, runCommand, runProgram } from './src/program.js';
export { END_FIELD, MAX_HEADER_BYTES, type ServiceEnd } from './src/service-client.js';
export { integerArgument, NEW_DATABASE, resultText, sentence, showProgress, table, timeCell } from './src/terminal.js';
