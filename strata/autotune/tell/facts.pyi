from compiler.autotune.tell.facts import *
