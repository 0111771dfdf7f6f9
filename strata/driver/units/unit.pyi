from compiler.driver.units.unit import *
