#!/usr/bin/env node
// Loads the bundle of the process that the arguments name. The smallest one prints help and usage errors.
import { createRequire } from 'node:module';
import { PARTS } from './parts.js';

const name = process.argv.find((argument) => Object.hasOwn(PARTS, argument)) ?? 'install-plugin';
createRequire(import.meta.url)(`./${name}.cjs`);
