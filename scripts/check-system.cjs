/*
 * Ends with one line when this Node.js is older than package.json requires, or may open too few files to load the modules
 * of the service. Written in ECMAScript 5, so that every version of Node.js can read it.
 */
'use strict';

/** Files that Node.js has open at once while it loads the modules, with some to spare. */
var OPEN_FILES = 512;

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

/** The soft limit of open files: a number, the text 'unlimited', or undefined where there are no limits, as on Windows. */
function openFiles() {
  if (process.platform === 'linux') {
    // A report costs 20 ms.
    var found = /^Max open files +(\w+)/m.exec(require('fs').readFileSync('/proc/self/limits', 'latin1'));
    if (found) return found[1];
  }
  // Otherwise the report asks DNS for the names of peers.
  process.report.excludeNetwork = true;
  var limits = process.report.getReport().userLimits;
  return limits && limits.open_files.soft;
}

var soft = openFiles();
if (Number(soft) < OPEN_FILES) {
  var limit = 'The limit of open files is ' + soft + ', too small to load the service.';
  console.error('petstore: ' + limit + ' Raise it (ulimit -n 20000).');
  process.exit(1);
}
