/*
 * Ends with one line when this Node.js is older than package.json asks for. Written in ECMAScript 5, so that every version
 * can read it.
 */
'use strict';

var wanted = require('../package.json').engines.node;

/** Whether `version` is in a range such as `^20.19.0 || >=24.11.0`. */
function satisfies(version, range) {
  return range.split(' || ').some(function (part) {
    var numbers = /^(\^|>=)(\d+)\.(\d+)\.(\d+)$/.exec(part);
    var own = version.split('.').map(Number);
    if (numbers[1] === '^' && own[0] !== Number(numbers[2])) return false;
    for (var index = 0; index < 3; index++) {
      var difference = own[index] - Number(numbers[index + 2]);
      if (difference !== 0) return difference > 0;
    }
    return true;
  });
}

if (!satisfies(process.versions.node.split('-')[0], wanted)) {
  var advice = 'Install Node.js ' + wanted + ' (https://nodejs.org).';
  console.error('petstore: Node.js ' + process.version + ' does not run this service. ' + advice);
  process.exit(1);
}
